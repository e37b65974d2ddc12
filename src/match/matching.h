/* SPDX-License-Identifier: MIT */
/** The state of a matching (match/match.c), and inline functions for its parts. All run on the thread that matches. */
#ifndef XHEAP_MATCH_MATCHING_H
#define XHEAP_MATCH_MATCHING_H

#include "base/map.h"
#include "match/block_match.h"
#include "match/live_chart.h"
#include "match/match.h"
#include "match/match_rows.h"
#include "match/nest.h"
#include "match/packing.h"
#include "match/point_stream.h"
#include "match/survivors.h"
#include "table/live.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

struct trace_block;
struct trace_gap;

enum { STAMP_SLACK_NS = 1000, RING_ROWS = 1 << 14 };
_Static_assert(RING_ROWS % PACK_ROWS == 0, "the ring consists of groups");
/* The least points of a run that is worth a block match. UINT32_MAX: isolated event blocks have none, either. Tests set
   it. */
#ifndef BLOCK_MATCH_MIN
#define BLOCK_MATCH_MIN 256u
#endif
#define COPY_BIT 0x80000000u      /* in a cell or a history: an index in copies, not in the table */
#define HEAPLESS (TRACE_NONE - 1) /* the annotated heaps of a process of which it is not known which they are */

/* The end of a row. */
struct row_end {
	int64_t time_ns;
	uint32_t site, thread, point; /* that ended it, or HEAP_NONE */
	uint8_t end;                  /* enum heap_end */
};

/* An end of an address that was not live. */
struct pending_free {
	struct row_end end; /* its time is INT64_MIN once it is taken */
	uint64_t address;
	uint32_t process;
	uint32_t annotated;     /* the annotated heap whose table has the address, HEAPLESS, or TRACE_NONE */
	uint64_t earlier_bytes; /* the size of an earlier block that it may end; 0: it cannot end one */
	/* when the address's end before it was over, also of an earlier block; INT64_MIN: none */
	int64_t before_ns;
	uint32_t heap;
};

/** The state of a process. */
/** An allocator's block in which others were. */
struct plain_note {
	uint64_t address, end; /**< equal: there is none */
	uint32_t id;
};
enum { PLAIN_NOTES = 32, PLAIN_NOTE_SHIFT = 18 /* arenas of Python have as many bytes, or four times that */ };

struct matching_process {
	struct live live;
	struct live heapless; /* blocks of annotated heaps that are not known */
	struct nest nest;     /* used if there are annotated heaps */
	/** by a hash of the addresses in them; NULL before the first one */
	struct plain_note *plain_notes;
	uint32_t first_heap;  /* if there are annotated heaps: its first heap, or TRACE_NONE */
	uint32_t forked_from; /* TRACE_NONE, or another valid process */
	bool keeps_history;
	bool lacks_history; /* of the points that were matched before its first fork became known */
	bool has_started;   /* its fork was noted */
	/* addresses that were freed while earlier blocks were being found: indexes in measured_ns */
	struct map measured;
	int64_t *measured_ns; /* when the last call that freed the address was over */
	size_t measured_count, measured_capacity;
	int64_t reading_ns;              /* when the reading of its heaps began; INT64_MIN: unknown */
	uint64_t left_count, left_bytes; /* what is still live of the inherited blocks */
	bool has_points;                 /* of those that were matched */
	bool has_ended;                  /* and everything live in it has ended, too */
	bool is_end_known;               /* the increment before knew that the process is over */
	const struct trace_gap **gaps;   /* the gaps that lost frees */
	int64_t last_conflict_ns;        /* the latest time at which a block ended by a conflict; INT64_MIN: none */
	uint32_t gap_count;
};

/** The start of a forked process, or the end of a process. */
struct lifecycle_event {
	int64_t time_ns;
	uint32_t process;
};

/** The last site of a stack, as a hint. */
struct site_note {
	uint32_t entry, site;
};

/* The live bytes, as they change in order of time, and their peak. */
struct level {
	int64_t time_ns; /* of the last change */
	uint64_t live_bytes;
	struct heap_peak peak; /* of the times before */
	/* a change came with an earlier time than the one before it: the peak is invalid */
	bool has_gone_back;
	bool has_earlier;         /* some blocks were live before the trace */
	struct live_chart *chart; /* NULL: nobody asks for it */
};

/* An allocation of a process that takes part in a fork, or a child's copy of one, which the child has freed. */
struct history {
	/* what the address had before: a row, with COPY_BIT an index in copies, or HEAP_NONE; of a copy: the block */
	uint32_t before;
	bool is_copy;
	bool is_nested; /* then it is in no sum */
	uint64_t size_bytes;
	int64_t birth_ns; /* of a copy: when it was freed */
};

/* The numbers of the trace's rows for which there is room. */
struct known_rows {
	uint32_t processes, threads, nodes, heaps, gaps;
};

/** A matching under way. */
struct matching {
	struct heap_table *table;
	struct heap_build how;
	struct known_rows known;
	struct heap_passed passed; /* what was matched so far */
	size_t most;               /* the most rows that can come */
	struct heap_allocation *ring;
	struct heap_details *ring_details;
	uint32_t written; /* rows below it are not in the ring any more */
	struct survivors *survivors;
	struct heap_stream *stream;
	struct packing *packing;
	struct history *history; /* by row; NULL: nothing was forked */
	size_t history_count;    /* for which there is room */
	struct matching_process *processes;
	/* per thread: the allocation of its last event, or HEAP_NONE; [1]: of its last event of an annotated heap */
	uint32_t (*last_alloc)[2];
	uint32_t *last_realloc_from; /* per thread: what its realloc under way took, or HEAP_NONE */
	uint32_t *last_realloc_heap; /* the heap of that block */
	struct map site_ids;
	struct site_note *site_notes; /* by stack: the site of the last search */
	size_t site_capacity, numbers_capacity, use_capacity;
	struct map seen;     /* keys: site and thread */
	uint32_t *last_user; /* by site: the thread that allocated there last */
	size_t user_capacity;
	/* inherited blocks that children freed, and blocks of times without history */
	struct history *copies;
	size_t copy_count, copy_capacity;
	/* frees of addresses that are not live; from pending_first on, in order of time */
	struct pending_free *pending;
	size_t pending_first, pending_count, pending_capacity;
	/* second ends of addresses: they end earlier blocks if the first ends were over before the heaps were read */
	struct pending_free *late_frees;
	size_t late_free_count, late_free_capacity;
	struct lifecycle_event *starts, *ends; /* of forked and of ended processes, in order of time */
	uint32_t start_count, end_count, next_start, next_end;
	int64_t next_lifecycle_ns; /* no process begins or ends before it */
	int64_t until_ns;          /* later points are not matched yet */
	bool is_by_points;         /* no run gets a block match */
	bool has_objects;          /* a heap object was made: from then on blocks may change their heaps */
	bool is_folded;            /* a part of the trace is in sums */
	const struct trace_gap **gaps;
	struct level level;
	uint64_t done, reported; /* points matched so far, and their number at the last call of progress */
	int64_t instant_ns;  /* of the last point */
	size_t instant_capacity, time_capacity, fault_capacity;
	bool *is_annotation;    /* by entry: its blocks belong to an annotated heap; NULL: no entry is */
	struct live *annotated; /* by heap */
	uint32_t annotated_count;
	struct map heap_ids; /* of annotated_count heaps, by a hash of process, handle and name */
	uint32_t *next_heap; /* by heap: the next one of its process, or TRACE_NONE */
	struct map moved;    /* keys: allocations of heap objects that were deleted */
};

/* A point, unpacked. */
struct point {
	int64_t time_ns;
	uint64_t address;
	struct live *live; /* the table for blocks of its kind */
	uint32_t process, thread;
	const struct trace_block *block;
	uint32_t row, ordinal;
};

/** Read the rows that the trace has by now. Return 0 or a negative errno with the reason in `diag`. */
int matching_read(struct matching *matching, const struct trace *trace, struct diag *diag);

/* ---- the peak ---- */

/* Take all changes of one time together: raise the peak to the live bytes. */
static inline void level_settle(struct level *level)
{
	if (level->live_bytes > level->peak.bytes)
		level->peak = (struct heap_peak){level->time_ns, level->live_bytes};
	if (level->chart)
		live_chart_note(level->chart, level->time_ns, level->live_bytes);
}

/* Add a block that was live all the time. */
static inline void level_raise(struct level *level, uint64_t bytes)
{
	level->has_earlier = true;
	level->live_bytes += bytes;
	if (level->chart)
		live_chart_raise(level->chart, bytes);
}

/* Change the live bytes at a time by `bytes`, modulo 2^64 if they shrink. */
static inline void level_change(struct level *level, int64_t time_ns, uint64_t bytes)
{
	if (time_ns != level->time_ns) {
		level->has_gone_back |= time_ns < level->time_ns;
		level_settle(level);
		level->time_ns = time_ns;
	}
	level->live_bytes += bytes;
}

/* ---- rows ---- */

/* Return a row that is live, else NULL. */
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

/** Tell the watcher of a row that is out of the ring. */
static inline void matching_watch_add(const struct matching *matching, const struct heap_allocation *row)
{
	if (matching->how.watch)
		matching->how.watch->add(matching->how.watch->context, matching->table, row);
}

/** Return the process that allocated the row. */
static inline uint32_t matching_process_of(const struct matching *matching, const struct heap_allocation *row)
{
	return matching->table->dictionary->threads[row->thread].process;
}

/** Return whether the allocation is live. */
static inline bool matching_is_live(const struct matching *matching, uint32_t id)
{
	return matching_live_row(matching, id) != NULL;
}

/** Move an end to another time, at which it has no point. */
static inline void row_end_move(struct row_end *end, int64_t time_ns)
{
	end->point = time_ns == end->time_ns ? end->point : HEAP_NONE;
	end->time_ns = time_ns;
}

/** Return the end that a point is. */
static inline struct row_end point_row_end(struct matching *matching, const struct point *point, enum heap_end end)
{
	return (struct row_end){.time_ns = point->time_ns,
				.site = matching_site_of(matching, point->block, point->row),
				.thread = point->thread,
				.point = point->ordinal,
				.end = (uint8_t)end};
}

#endif
