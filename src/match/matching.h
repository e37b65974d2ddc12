/* SPDX-License-Identifier: MIT */
/** What matching (match/match.c) knows while it goes through a trace, and what its parts do for each other. */
#ifndef XHEAP_MATCH_MATCHING_H
#define XHEAP_MATCH_MATCHING_H

#include "base/map.h"
#include "match/block_match.h"
#include "match/match.h"
#include "match/nest.h"
#include "match/packing.h"
#include "match/point_stream.h"
#include "match/survivors.h"
#include "table/live.h"

enum {
	STAMP_SLACK_NS = 1000,
	RING_ROWS = 1 << 14,
	MATCHING_APART_MIN = 256 /* points of a run that is worth matching apart */
};
_Static_assert(RING_ROWS % PACK_ROWS == 0, "the ring consists of groups");
#define COPY_BIT 0x80000000u /* in a cell or in `before`: a place in copies, not in the table */
#define INHERITED_UNKNOWN (TRACE_NONE - 1)

/* An inherited block that a child gave back. */
struct copy {
	int64_t end_ns;
	uint32_t original;
};

/* An end of an address that was not live. */
struct pending_free {
	int64_t time_ns;
	uint64_t address;
	uint32_t process, thread;
	uint32_t annotated; /* TRACE_NONE, or the place in matching->annotated of the address's blocks */
	uint32_t site;
	uint64_t earlier_bytes; /* it can be the end of an earlier block of so many; 0: it cannot */
	/* when the address's end before it was over, also of an earlier block; INT64_MIN: there was none */
	int64_t before_ns;
	uint32_t heap;
	uint8_t end;
};

struct matching_process {
	struct live live;
	struct nest nest;     /* when there are annotated heaps */
	uint32_t first_heap;  /* likewise: of its heaps, or TRACE_NONE */
	uint32_t forked_from; /* TRACE_NONE, or a valid other process */
	bool keeps_history;
	/* addresses that were given back while earlier blocks were being found: places in measured_ns */
	struct map measured;
	int64_t *measured_ns; /* when the last call that did was over */
	size_t measured_count, measured_capacity;
	int64_t reading_ns;              /* when the reading of its heaps began; INT64_MIN: not known */
	uint64_t left_count, left_bytes; /* of what it inherited */
	bool has_ended;                  /* and what was live in it, too */
	bool is_end_known;               /* that it is over, by the look before */
	const struct trace_gap **gaps;   /* those that lost frees */
	uint32_t gap_count;
};

struct lifecycle_event {
	int64_t time_ns;
	uint32_t process;
};

struct site_note {
	uint32_t entry, site;
};

/* How much is live, as it changes in order of time, and the most that was. */
struct level {
	int64_t time_ns; /* of the last change */
	uint64_t live_bytes;
	struct heap_peak peak; /* of the times before */
	/* something changed at an earlier time than the change before it: the peak is none */
	bool has_gone_back;
};

/* What a process that has to do with a fork remembers of each of its rows. */
struct history {
	uint32_t before; /* the row of this address before it, or HEAP_NONE */
	bool is_nested;  /* and so in no sum */
	uint64_t size_bytes;
	int64_t birth_ns;
};

/* Rows of the trace that there is room for. */
struct known_rows {
	uint32_t processes, threads, nodes, heaps;
};

struct matching {
	struct heap_table *table;
	struct heap_build how;
	struct known_rows known;
	struct heap_passed passed; /* what was matched */
	size_t most;               /* rows that can come */
	struct heap_allocation *ring;
	struct heap_details *ring_details;
	uint32_t written; /* rows before are not in the ring any more */
	struct survivors *survivors;
	struct heap_stream *stream;
	struct packing *packing;
	struct history *history; /* by row; NULL when nothing was forked */
	struct matching_process *processes;
	/* per thread: what its last event allocated, or HEAP_NONE; and the same of annotated heaps' events */
	uint32_t (*last_alloc)[2];
	uint32_t *last_realloc_from; /* per thread: what its realloc that is under way took, or HEAP_NONE */
	struct map site_ids;
	struct site_note *site_notes; /* by stack: the site that was asked for last */
	size_t site_capacity, numbers_capacity, use_capacity;
	struct map seen;     /* site and thread */
	uint32_t *last_user; /* by site: the thread that allocated there last */
	size_t user_capacity;
	struct copy *copies;
	size_t copy_count, copy_capacity;
	/* frees of addresses that are not live; from pending_first on, in order of time */
	struct pending_free *pending;
	size_t pending_first, pending_count, pending_capacity;
	/* second ends of addresses: of earlier blocks, if the first ones were over before the heaps were read */
	struct pending_free *late_frees;
	size_t late_free_count, late_free_capacity;
	struct lifecycle_event *starts, *ends; /* of forked, and of ended processes */
	uint32_t start_count, end_count, next_start, next_end;
	int64_t next_lifecycle_ns; /* before it nothing begins or ends */
	int64_t until_ns;          /* points behind it are none yet */
	bool is_by_points;         /* nothing is matched apart */
	const struct trace_gap **gaps;
	struct level level;
	uint64_t done, told;    /* points gone through, and when that was said last */
	bool *is_annotation;    /* by entry: blocks are those of an annotated heap; NULL when no entry is */
	struct live *annotated; /* by heap, and then by process: of heaps that are not known */
	uint32_t *inherited;    /* by heap: its parent's, TRACE_NONE: none, INHERITED_UNKNOWN: not looked for */
	uint32_t *next_heap;    /* by heap: the next one of its process, or TRACE_NONE */
};

/* One point, unpacked. */
struct point {
	int64_t time_ns;
	uint64_t address;
	struct live *live; /* where blocks of its kind are */
	uint32_t process, thread;
	const struct trace_block *block;
	uint32_t row;
};

/* ---- the peak ---- */

/* All that changes at one time is taken together. */
static inline void level_settle(struct level *level)
{
	if (level->live_bytes > level->peak.bytes)
		level->peak = (struct heap_peak){level->time_ns, level->live_bytes};
}

/* bytes: more than before; less are less than none. */
static inline void level_change(struct level *level, int64_t time_ns, uint64_t bytes)
{
	if (time_ns != level->time_ns) {
		level->has_gone_back |= time_ns < level->time_ns;
		level_settle(level);
		level->time_ns = time_ns;
	}
	level->live_bytes += bytes;
}

/* ---- rows (match/match_rows.c) ---- */

/* A row that is live, else NULL. */
static inline struct heap_allocation *matching_live_row(const struct matching *matching, uint32_t id)
{
	struct heap_allocation *row = &matching->ring[id % RING_ROWS];
	if (id & COPY_BIT)
		return NULL;
	if (id < matching->written) {
		struct survivor *survivor = survivors_find(matching->survivors, id);
		row = survivor ? &survivor->allocation : NULL;
	}
	return row && row->end == HEAP_END_OPEN ? row : NULL;
}

static inline uint32_t matching_process_of(const struct matching *matching, const struct heap_allocation *row)
{
	return matching->table->dictionary->threads[row->thread].process;
}

static inline bool matching_is_live(const struct matching *matching, uint32_t id)
{
	return matching_live_row(matching, id) != NULL;
}

/** Have the oldest rows of the ring packed, up to the end of a group. */
void matching_ring_write(struct matching *matching);

/** The site's number; it may be new. And that of a point. */
uint32_t matching_site(struct matching *matching, struct heap_site site);
uint32_t matching_site_of(struct matching *matching, const struct trace_block *block, uint32_t row);

/** A thread allocated there. */
void matching_site_use(struct matching *matching, uint32_t site, uint32_t thread);

/** A live row at the end of the table: its number. */
uint32_t matching_row_add(struct matching *matching, const struct heap_allocation *row,
			  const struct heap_details *details);

/** End a live row without a word to the level. thread: that did it, or HEAP_NONE. */
void matching_row_end(struct matching *matching, uint32_t id, struct heap_allocation *row, unsigned end,
		      int64_t time_ns, uint32_t site, uint32_t thread);

/** Likewise, and the level knows. The second one: if it is live. */
void matching_live_row_end(struct matching *matching, uint32_t id, struct heap_allocation *row, unsigned end,
			   int64_t time_ns, uint32_t site, uint32_t thread);
void matching_allocation_end(struct matching *matching, uint32_t id, unsigned end, int64_t time_ns, uint32_t site,
			     uint32_t thread);

/* ---- contradictions (match/match_late_frees.c) ---- */

/* What the end of a block says that it had, and what is known of the one before it at its address: only while earlier
   blocks are being found. */
struct measure {
	uint64_t bytes;
	int64_t before_ns;
};

/** A block began over this one and no end came that could be its own. */
void matching_settle_conflict(struct matching *matching, uint32_t older, uint32_t newer);

/** What an end says of its block while earlier blocks are being found. */
struct measure matching_measure(struct matching *matching, const struct point *point);

/** Count a free of what nobody saw begin. */
void matching_unknown_free(struct matching *matching, uint32_t process);

/** An end of an address that is not live: it waits for its Begin. */
void matching_pending_add(struct matching *matching, const struct point *point, unsigned end, struct measure measure);

/** The end, stamped a little early, of the block that begins here; it is taken from those that are pending. NULL: there
    is none. */
struct pending_free *matching_pending_take(struct matching *matching, const struct point *point,
					   struct pending_free *taken);

/** Those that have waited long enough by this time; and what can only be told when all is known. */
void matching_pending_expire(struct matching *matching, int64_t time_ns);
void matching_late_frees_settle(struct matching *matching);

/* ---- forks (match/match_forks.c) ---- */

/** A child gives back a block of its parent: only the child's copy ends. False when there is no such block. */
bool matching_copy_end(struct matching *matching, const struct point *point);
void matching_fork(struct matching *matching, uint32_t child);

/* ---- what lies in what (match/match_nests.c) ---- */

/** What the block that begins here lies in: its allocation, or HEAP_NONE; in *around where that is of an annotated
    heap. */
uint32_t matching_container(struct matching *matching, const struct point *point, struct nest_span **enclosing);

/** Where the new allocation lies, and what may lie in it from now on. */
void matching_nest_note(struct matching *matching, const struct point *point, uint32_t id, uint32_t container,
			const struct nest_span *enclosing);

/** The block at the point's address is gone, and all that lay in its bytes with it. */
void matching_nested_end(struct matching *matching, const struct point *point, uint64_t bytes);

/* ---- points (match/match_points.c) ---- */

/** Whether the points wait for the next look: they go on behind this one's end, and may then be matched apart. */
bool matching_waits(const struct matching *matching, const struct heap_run *run);

/** The next points of one thread. */
void matching_run(struct matching *matching, struct heap_run run);

/** Forks and ends of processes that come before a point of this time. */
void matching_advance(struct matching *matching, int64_t time_ns);
void matching_process_end(struct matching *matching, uint32_t id, bool is_open);

#endif
