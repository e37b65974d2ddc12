/* SPDX-License-Identifier: MIT */
/**
 * Which allocations count. All parts of a filter have to pass. It is the only place that decides so, for every action
 * and listing; of sums in place of blocks, folded.c says whether all of them pass. CONTRIBUTING.md has what a further
 * part needs.
 */
#ifndef XHEAP_QUERY_FILTER_H
#define XHEAP_QUERY_FILTER_H

#include "base/position.h"
#include "base/sink.h"
#include "base/text.h"
#include "query/pattern.h"
#include "table/table.h"

/** A range of times; both bounds are inclusive. */
struct heap_range {
	int64_t from_ns, to_ns;
};

/** Where an allocation's beginning and its free lie as to a window. Outside is before it for the beginning, after it or
 *  never for the free; an end of the process is no free. HEAP_CLASS_NONE: allocated after the window, or freed before
 *  it. */
#define HEAP_CLASSES(X) X(AIFI) X(AIFO) X(AOFI) X(AOFO)

enum heap_class {
#define X(name) HEAP_##name,
	HEAP_CLASSES(X)
#undef X
		HEAP_CLASS_NONE
};

/** A set of classes is the sum of these. */
#define HEAP_CLASS_BIT(class) (1u << (class))

/** Numbers that pass: from <= number < to. */
struct heap_bounds {
	uint64_t from, to;
};

/** Which blocks count where some lie in others. */
enum heap_nesting {
	/** those that lie in no other; of a heap that is asked for by itself, all of its own */
	HEAP_NESTING_OUTERMOST,
	/** those that no other lies in; and where nothing else is asked for, what remains of the others */
	HEAP_NESTING_INNERMOST,
	HEAP_NESTING_ALL
};

/** A moment, at which blocks have to be live. Begin it with zeros. heap_moment_find() (match/moment.h) sets the members
    behind `at`, which tell of beginnings and ends in the nanosecond of `at`. */
struct heap_moment {
	bool is_asked;
	struct position at;
	bool births_are_later, ends_are_later, exits_are_later; /**< all of them lie behind the moment */
	/** allocations, in order, whose beginnings and ends lie behind it, where others do not; NULL: none */
	uint32_t *later_births, *later_ends;
	size_t birth_count, end_count;
};

/** Conditions that all have to hold. Begin it with heap_filter_init(). */
struct heap_filter {
	struct heap_bounds size_bytes, lifetime_ns;
	bool is_closed; /**< only freed blocks */
	struct heap_moment moment;
	unsigned classes;         /**< bits HEAP_CLASS_BIT(class): one of them; 0: any */
	struct heap_range window; /**< of the classes */
	uint32_t *pids, *tids;    /**< none: all */
	size_t pid_count, tid_count, pid_capacity, tid_capacity;
	char **heaps; /**< handles or names */
	size_t heap_count, heap_capacity;
	struct heap_patterns required, required_of_free;
	enum heap_nesting nesting;
	bool is_partial; /**< of a part of the time, or split: what remains of a block is not known then */
	/** passes over allocations with this filter, and all that is made of them, end soon when it is set
	    (base/cancel.h); NULL: never */
	const bool *is_cancelled;

	/* Made by heap_filter_prepare(). */
	uint8_t *site, *free_site; /* by site: whether its stack passes */
	uint8_t *thread;           /* by thread of the trace */
	uint8_t *heap;             /* by heap of the trace, the last one: of none */
	uint32_t heap_none;
	bool without_peak;      /**< nobody asks what was live at the peak */
	uint8_t *gone;          /**< by thread: its process has ended, and has nothing outstanding; NULL: it may have */
	uint8_t unwanted_flags; /**< enum heap_allocation_flag: allocations with one of them do not pass */
	bool has_overhead;      /**< what remains of blocks with others in them is counted */
	bool is_plain;          /* everything passes */
	bool is_of_sites;       /**< whether an allocation passes depends on its site alone */
	unsigned columns;       /**< PACK_TIMES, ...: what decides whether an allocation passes */
	bool is_whole;          /* everything that is counted by itself: blocks that lie in no other */
	struct heap_selection *selection; /* what is known to pass; NULL when everything does */
};

/** Which allocations pass, as far as they have been looked at: a bit for each of a group that is known. A pass over the
 *  table (query/scan.h) looks at groups that are not known yet, and leaves out those of which none pass. */
struct heap_selection {
	/** by group; groups of copies (table/checkpoints.h) come behind all others */
	uint64_t (*passes)[PACK_ROWS / 64];
	uint8_t *is_known;
};

/** Begin with a filter that everything passes. */
void heap_filter_init(struct heap_filter *filter);

/** Begin with a filter that everything passes, prepared with the table. */
void heap_filter_init_for(struct heap_filter *filter, const struct heap_table *table);

/** Set `gone`, unless no process has ended. One that is recorded no more has not. */
void heap_filter_forget_ended(struct heap_filter *filter, const struct heap_table *table);

/** Begin with a copy of `from` for all blocks, whether they lie in others or not, prepared with the table. End it with
 *  heap_filter_fini_beside(), before `from`. */
void heap_filter_init_beside(struct heap_filter *filter, const struct heap_filter *from,
			     const struct heap_table *table);

/** Free what such a copy has of its own. */
void heap_filter_fini_beside(struct heap_filter *filter);

/** Begin with a copy of `from` for the blocks of one process of the trace, prepared with the table. End it with
 *  heap_filter_fini_of_process(), before `from`. */
void heap_filter_init_of_process(struct heap_filter *filter, const struct heap_filter *from,
				 const struct heap_table *table, uint32_t process);

/** Free what such a copy has of its own. */
void heap_filter_fini_of_process(struct heap_filter *filter);

/** Begin with a filter that allocations of some sites and threads pass, prepared with the table: arrays by site and by
 *  thread, which become the filter's; NULL: all. */
void heap_filter_init_chosen(struct heap_filter *filter, const struct heap_table *table, uint8_t *sites,
			     uint8_t *threads);

/** Free the filter. Names of heaps stay the caller's. */
void heap_filter_fini(struct heap_filter *filter);

/** Find out which sites, threads and heaps of the trace pass. Call it again for another table of the trace. Return
    0, or -EINVAL with the reason in diag: the trace lacks a pid, thread or heap. */
int heap_filter_prepare(struct heap_filter *filter, const struct heap_table *table, struct heap_names *names,
			struct diag *diag);

/** Make `filter` a copy of `from`, which is not prepared itself, and prepare it with the table. Names of all tables are
 *  of one tree, so all copies share the patterns of `from`; a moment is found for the copy, afterwards. Return as
 *  heap_filter_prepare(). End the copy with heap_filter_fini_shared(). */
int heap_filter_prepare_shared(struct heap_filter *filter, struct heap_filter *from, const struct heap_table *table,
			       struct heap_names *names, struct diag *diag);

/** Free what such a copy has of its own. Zeroed memory is a copy, too. */
void heap_filter_fini_shared(struct heap_filter *filter);

/** Return the class of the allocation with respect to the window; HEAP_CLASS_NONE: it was freed, or its process ended,
    before the window, or it began after it. */
enum heap_class heap_class_of(const struct heap_allocation *allocation, struct heap_range window);

/** Parse a set of classes, "AIFI" or "AIFO+AOFI", in any case. Return its bits; 0: a part of it is no class. */
unsigned heap_class_set_parse(const char *text);

/** Write the names of a set of classes, with "+" between them. */
void heap_class_set_write(unsigned classes, struct sink *out);

/** Return the name of a class; "none" for HEAP_CLASS_NONE. */
const char *heap_class_name(enum heap_class class);

/** Return all names, "AIFI, AIFO, ...", for messages. */
struct text heap_class_names(void);

/** Set a bit of `passes`, PACK_ROWS bits, for each of a group's first `count` rows that passes. The columns that decide
    are there. first: number of the group's first row. */
void heap_filter_select(uint64_t *passes, const struct heap_filter *filter, const struct pack_columns *columns,
			uint32_t first, uint32_t count);

/** Return whether allocations of the site may pass. */
static inline bool heap_filter_passes_site(const struct heap_filter *filter, uint32_t site)
{
	return !filter->site || filter->site[site];
}

#endif
