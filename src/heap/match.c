/* SPDX-License-Identifier: MIT */
/*
 * From points to allocations. Points come in order of time (heap/stream.h); each process has a table of its blocks by address:
 *
 *     Begin  a new row of the table, current at its address
 *     End    the current row of the address is finished and the address forgotten
 *
 * What makes it longer than that:
 *
 * Stamps.  Two threads' clocks can differ by a little, so that of one address the sequence Begin A, End A, Begin B, End B may come
 *   as Begin A, Begin B, End A, ...: a block begins where another is live. The older one is then kept as `other`
 *   until the next point of the address decides: an End by another thread within STAMP_SLACK_NS was the older one's, anything else is
 *   a contradiction. Likewise an End of an address that is not live waits for STAMP_SLACK_NS for its Begin. Points of
 *   one thread are never reordered.
 *
 * Fork.  A child begins with its parent's live blocks, which must cost nothing. So the child's table starts empty, and the
 *   tables of processes that have to do with a fork keep the addresses of dead blocks: `before` links the rows of
 *   one address, from the newest to the oldest. When a child gives back what it never began, the chain of its parent (then of
 *   the parent's parent) is searched for the row that was current at the fork. The child's end of it is kept in `copies`.
 *
 * Annotated heaps.  Their blocks may lie in others, also at the same address, so each such heap has a table of its own. Where a block lies is looked
 *   up when it begins (heap/nest.h). When the block around it goes, so does it, as if it had been destroyed.
 *
 * Earlier blocks.  Those from before an attach are found some time after it, by reading the heaps (session's walk). Until then each end tells the
 *   usable bytes of its block. So a block found in the heaps is dropped when its address has had an event; and an end of an address that had
 *   none is the end of an earlier block. But a call that was under way at the attach, whose end is no event, may have begun a block where another one
 *   ended since: it is one if that end was over before the heaps were read.
 *
 * Ends of processes.  All that is live in a process ends with it, at that place of the sequence.
 *
 * Memory.  The newest rows are in a ring. Those that fall out of it are packed (heap/packing.h); those of them that are still
 *   live survive beside, and when the last one of a group has ended, their ends are packed, too (heap/survivors.h).
 *
 * Time.  An event block that no other thread has points in is matched by itself when it is decoded (heap/within.h), as most blocks of memory
 *   begin and end in one. Such rows never pass through here. Where all that the event block ends is live and nothing lives where it begins
 *   something, what is left is done at once: the sequence of its points could only come to the same. Else, and in all that is
 *   longer than Begin and End, it is gone through point by point.
 */
#include "heap/match.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/map.h"
#include "base/memory.h"
#include "heap/born.h"
#include "heap/folded.h"
#include "heap/live.h"
#include "heap/nest.h"
#include "heap/numbers.h"
#include "heap/packing.h"
#include "heap/peak.h"
#include "heap/sample.h"
#include "heap/stream.h"
#include "heap/survivors.h"
#include "heap/within.h"

enum { STAMP_SLACK_NS = 1000, DURATION_EXACTNESS = 1024, RING_ROWS = 1 << 14, PROGRESS_POINTS = 1 << 18,
       AHEAD = 16 /* points whose blocks' cells are fetched early */,
       LARGE_BITS = 15 /* a table of so many cells does not stay in the processor's cache */ };
_Static_assert(RING_ROWS % PACK_ROWS == 0, "the ring consists of groups");
#define COPY_BIT 0x80000000u       /* in a cell or in `before`: a place in copies, not in the table */
#define INHERITED_UNKNOWN (TRACE_NONE - 1)

/* An inherited block that a child gave back. */
struct copy {
	int64_t end_ns;
	uint32_t original;
};

/* An end of an address that was not live. */
struct stray {
	int64_t time_ns;
	uint64_t address;
	uint32_t process, thread;
	uint32_t annotated;           /* TRACE_NONE, or the place in matching->annotated of the address's blocks */
	uint32_t site;
	uint64_t earlier_bytes;       /* it can be the end of an earlier block of so many; 0: it cannot */
	int64_t before_ns;            /* when the address's end before it was over, also of an earlier block; INT64_MIN: there was none */
	uint32_t heap;
	uint8_t end;
};

struct matching_process {
	struct live live;
	struct nest nest;             /* when there are annotated heaps */
	uint32_t first_heap;          /* likewise: of its heaps, or TRACE_NONE */
	uint32_t forked_from;         /* TRACE_NONE, or a valid other process */
	bool keeps_history;
	struct map measured;          /* addresses that were given back while earlier blocks were being found: places in measured_ns */
	int64_t *measured_ns;         /* when the last call that did was over */
	size_t measured_count, measured_capacity;
	int64_t reading_ns;           /* when the reading of its heaps began; INT64_MIN: not known */
	uint64_t left_count, left_bytes; /* of what it inherited */
	bool has_ended;               /* and what was live in it, too */
	bool is_end_known;            /* that it is over, by the look before */
	const struct trace_gap **gaps; /* those that lost frees */
	uint32_t gap_count;
};

struct moment {
	int64_t time_ns;
	uint32_t process;
};

struct site_note { uint32_t entry, site; };

/* How much is live, as it changes in order of time, and the most that was. */
struct level {
	int64_t time_ns;              /* of the last change */
	uint64_t live_bytes;
	struct heap_peak peak;        /* of the times before */
	bool has_gone_back;           /* something changed at an earlier time than the change before it: the peak is none */
};

/* What a process that has to do with a fork remembers of each of its rows. */
struct history {
	uint32_t before;              /* the row of this address before it, or HEAP_NONE */
	bool is_nested;               /* and so in no sum */
	uint64_t size_bytes;
	int64_t birth_ns;
};

/* Rows of the trace that there is room for. */
struct known { uint32_t processes, threads, nodes, heaps; };

struct matching {
	struct heap_table *table;
	struct heap_build how;
	struct known known;
	int64_t passed_ns;            /* the latest point that was matched; INT64_MIN: none was */
	size_t most;                  /* rows that can come */
	struct heap_allocation *ring;
	struct heap_details *ring_details;
	uint32_t written;             /* rows before are not in the ring any more */
	struct survivors *survivors;
	struct heap_stream *stream;
	struct packing *packing;
	struct history *history;      /* by row; NULL when nothing was forked */
	struct matching_process *processes;
	uint32_t (*last_made)[2];     /* per thread: what its last event allocated, or HEAP_NONE; and the same of annotated heaps' events */
	uint32_t *last_taken;         /* per thread: what its realloc that is under way took, or HEAP_NONE */
	struct map site_ids;
	struct site_note *site_notes; /* by stack: the site that was asked for last */
	size_t site_capacity, numbers_capacity, use_capacity;
	struct map seen;              /* site and thread */
	uint32_t *last_user;          /* by site: the thread that allocated there last */
	size_t user_capacity;
	struct copy *copies;
	size_t copy_count, copy_capacity;
	struct stray *strays;         /* from stray_first on, in order of time */
	size_t stray_first, stray_count, stray_capacity;
	struct stray *doubts;         /* second ends of addresses: of earlier blocks, if the first ones were over before the heaps were read */
	size_t doubt_count, doubt_capacity;
	struct moment *starts, *ends; /* of forked, and of ended processes */
	uint32_t start_count, end_count, next_start, next_end;
	int64_t next_moment_ns;       /* before it nothing begins or ends */
	int64_t from_ns, until_ns;    /* points up to the first have been matched; those behind the other are none yet */
	const struct trace_gap **gaps;
	struct level level;
	uint64_t done, told;          /* points gone through, and when that was said last */
	bool *is_annotation;          /* by entry: blocks are those of an annotated heap; NULL when no entry is */
	struct live *annotated;       /* by heap, and then by process: of heaps that are not known */
	uint32_t *inherited;          /* by heap: its parent's, TRACE_NONE: none, INHERITED_UNKNOWN: not looked for */
	uint32_t *next_heap;          /* by heap: the next one of its process, or TRACE_NONE */
};

/* One point, unpacked. */
struct point {
	int64_t time_ns;
	uint64_t address;
	struct live *live;            /* where blocks of its kind are */
	uint32_t process, thread;
	const struct trace_block *block;
	uint32_t row;
};

/* ---- the peak ---- */

/* All that changes at one time is taken together. */
static void level_settle(struct level *level)
{
	if (level->live_bytes > level->peak.bytes)
		level->peak = (struct heap_peak){level->time_ns, level->live_bytes};
}

/* bytes: more than before; less are less than none. */
static void level_change(struct level *level, int64_t time_ns, uint64_t bytes)
{
	if (time_ns != level->time_ns) {
		level->has_gone_back |= time_ns < level->time_ns;
		level_settle(level);
		level->time_ns = time_ns;
	}
	level->live_bytes += bytes;
}

/* ---- rows ---- */

/* A row that is live, else NULL. */
static struct heap_allocation *live_row(const struct matching *matching, uint32_t id)
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

static uint32_t process_of(const struct matching *matching, const struct heap_allocation *row)
{
	return matching->table->dictionary->threads[row->thread].process;
}

static bool is_live(const struct matching *matching, uint32_t id)
{
	return live_row(matching, id) != NULL;
}

/* Have the oldest rows of the ring packed, up to the end of a group. */
static void ring_write(struct matching *matching)
{
	uint32_t first = matching->written, left = matching->table->count - first, room = PACK_ROWS - first % PACK_ROWS;
	uint32_t count = left < room ? left : room;
	const struct heap_allocation *rows = &matching->ring[first % RING_ROWS];
	packing_add(matching->packing, rows, &matching->ring_details[first % RING_ROWS], count);
	for (uint32_t i = 0; i < count; i++)
		if (rows[i].end == HEAP_END_OPEN)
			survivors_add(matching->survivors, first + i, &rows[i]);
	matching->written += count;
	survivors_complete(matching->survivors, matching->written);
}

static const struct heap_site earlier_site = {0, HEAP_NONE};

static uint32_t site_add(struct matching *matching, struct heap_site site)
{
	struct heap_table *table = matching->table;
	/* A stack has one function that it calls, as a rule. */
	struct site_note *note = &matching->site_notes[site.stack];
	if (note->site != HEAP_NONE && note->entry == site.entry)
		return note->site;
	bool added;
	uint32_t *id = map_add(&matching->site_ids, map_pair(site.stack, site.entry), &added);
	if (added) {
		*id = table->site_count;
		memory_grow(table->sites, table->site_count, matching->site_capacity);
		memory_grow(table->sums.numbers, table->site_count, matching->numbers_capacity);
		memory_grow(matching->last_user, table->site_count, matching->user_capacity);
		table->sums.numbers[table->site_count] = (struct heap_numbers){0};
		matching->last_user[table->site_count] = HEAP_NONE;
		table->sites[table->site_count++] = site;
	}
	*note = (struct site_note){site.entry, *id};
	return note->site;
}

static uint32_t site_of(struct matching *matching, const struct trace_block *block, uint32_t row)
{
	return site_add(matching, born_site(block, row));
}

static void site_use(struct matching *matching, uint32_t site, uint32_t thread)
{
	struct heap_sums *sums = &matching->table->sums;
	bool added;
	if (matching->last_user[site] == thread)
		return;
	matching->last_user[site] = thread;
	map_add(&matching->seen, map_pair(site, thread), &added);
	if (!added)
		return;
	memory_grow(sums->uses, sums->use_count, matching->use_capacity);
	sums->uses[sums->use_count++] = (struct heap_use){site, thread};
}

/* A live row at the end of the table. */
static uint32_t row_add(struct matching *matching, const struct heap_allocation *row, const struct heap_details *details)
{
	struct heap_table *table = matching->table;
	struct heap_process *process = &table->processes[process_of(matching, row)];
	if (table->count - matching->written == RING_ROWS)
		ring_write(matching);
	uint32_t id = table->count++;
	matching->ring[id % RING_ROWS] = *row;
	matching->ring_details[id % RING_ROWS] = *details;
	table->nested_count += !!(row->flags & HEAP_NESTED);
	if (row->flags & HEAP_NESTED)
		return id;
	struct heap_weight weight = heap_weigh(table, row);
	process->live_count += weight.count;
	process->live_bytes += weight.bytes;
	numbers_begin(&table->sums.numbers[row->site], row->size_bytes, row->flags);
	site_use(matching, row->site, row->thread);
	/* What was there before the trace was live all the time. */
	level_change(&matching->level, row->flags & HEAP_EARLIER ? INT64_MIN : row->birth_ns, weight.bytes);
	return id;
}

static uint32_t allocation_add(struct matching *matching, const struct point *point, bool is_nested)
{
	struct heap_allocation row;
	struct heap_details details;
	born_allocation(&row, point->block, &(struct heap_place){point->time_ns, point->address, point->row, HEAP_POINT_BEGIN});
	row.flags |= is_nested ? HEAP_NESTED : 0;
	row.site = site_of(matching, point->block, point->row);
	born_details(&details, point->block, point->row);
	details.previous = row.flags & HEAP_REALLOC ? matching->last_taken[point->thread] : HEAP_NONE;
	matching->last_taken[point->thread] = HEAP_NONE;
	return row_add(matching, &row, &details);
}

/* End a live row without a word to the level. thread: that did it, or HEAP_NONE. */
static void row_end(struct matching *matching, uint32_t id, struct heap_allocation *row, unsigned end, int64_t time_ns, uint32_t site, uint32_t thread)
{
	struct heap_process *process = &matching->table->processes[process_of(matching, row)];
	struct heap_weight weight = heap_weigh(matching->table, row);
	uint64_t size_bytes = row->size_bytes; /* before what is in the same word is written */
	row->end = (uint8_t)end;
	row->end_ns = time_ns > row->birth_ns ? time_ns : row->birth_ns;
	row->end_site = site;
	if (!(row->flags & HEAP_NESTED))
		numbers_end(&matching->table->sums.numbers[row->site], size_bytes, end, row->flags);
	if (end != HEAP_END_EXIT && !(row->flags & HEAP_NESTED)) {
		process->live_count -= weight.count;
		process->live_bytes -= weight.bytes;
	}
	if (id >= matching->written) {
		matching->ring_details[id % RING_ROWS].end_thread = thread;
		return;
	}
	survivor_of(row)->end_thread = thread;
	survivors_end(matching->survivors, id);
}

/* Likewise, and the level knows. */
static void live_row_end(struct matching *matching, uint32_t id, struct heap_allocation *row, unsigned end, int64_t time_ns, uint32_t site, uint32_t thread)
{
	if (!(row->flags & HEAP_NESTED))
		level_change(&matching->level, time_ns > row->birth_ns ? time_ns : row->birth_ns, 0 - heap_weigh(matching->table, row).bytes);
	row_end(matching, id, row, end, time_ns, site, thread);
}

static void allocation_end(struct matching *matching, uint32_t id, unsigned end, int64_t time_ns, uint32_t site, uint32_t thread)
{
	struct heap_allocation *row = live_row(matching, id);
	if (row)
		live_row_end(matching, id, row, end, time_ns, site, thread);
}

/* ---- contradictions ---- */

/* When in [from, to] a gap of the process can have swallowed a free: the gap's end, else INT64_MIN. */
static int64_t gap_between(const struct matching_process *process, int64_t from_ns, int64_t to_ns)
{
	for (uint32_t i = 0; i < process->gap_count; i++) {
		const struct trace_gap *gap = process->gaps[i];
		if (gap->from_ns <= to_ns && gap->to_ns >= from_ns)
			return gap->to_ns < to_ns ? gap->to_ns : to_ns;
	}
	return INT64_MIN;
}

/* A block began over this one and no end came that could be its own. */
static void settle_conflict(struct matching *matching, uint32_t older, uint32_t newer)
{
	const struct heap_allocation *row = live_row(matching, older), *newer_row = live_row(matching, newer);
	if (!row)
		return;
	uint32_t process = process_of(matching, row);
	int64_t to_ns = newer_row ? newer_row->birth_ns : row->birth_ns;
	/* It went with what it lay in, which is not in the sample. */
	if (matching->table->sample_bytes && row->flags & HEAP_NESTED) {
		allocation_end(matching, older, HEAP_END_DESTROY, to_ns, HEAP_NONE, HEAP_NONE);
		return;
	}
	int64_t gap_ns = gap_between(&matching->processes[process], row->birth_ns, to_ns);
	if (gap_ns != INT64_MIN) {
		allocation_end(matching, older, HEAP_END_GAP, gap_ns, HEAP_NONE, HEAP_NONE);
		return;
	}
	allocation_end(matching, older, HEAP_END_CONFLICT, to_ns, HEAP_NONE, HEAP_NONE);
	matching->table->order_conflicts++;
	matching->table->processes[process].order_conflicts++;
}

/* The block was there before, and was given back before it was found; a child's was its parent's. */
static void earlier_end(struct matching *matching, const struct stray *stray)
{
	if (matching->processes[stray->process].forked_from != TRACE_NONE) {
		matching->table->processes[stray->process].inherited_freed++;
		return;
	}
	uint64_t size_bytes = stray->earlier_bytes < BORN_SIZE_MAX ? stray->earlier_bytes : BORN_SIZE_MAX;
	const struct heap_allocation row = {
		.birth_ns = 0, .end_ns = INT64_MAX, .end = HEAP_END_OPEN, .size_bytes = size_bytes, .flags = HEAP_EARLIER,
		.site = site_add(matching, earlier_site), .end_site = HEAP_NONE, .thread = stray->thread, .heap = stray->heap};
	const struct heap_details details = {.address = stray->address, .previous = HEAP_NONE, .end_thread = HEAP_NONE};
	allocation_end(matching, row_add(matching, &row, &details), stray->end, stray->time_ns, stray->site, stray->thread);
}

static void unknown_free_count(struct matching *matching, const struct stray *stray)
{
	matching->table->unknown_frees++;
	matching->table->processes[stray->process].unknown_frees++;
}

static bool is_earlier(const struct stray *stray)
{
	return stray->earlier_bytes && stray->before_ns == INT64_MIN;
}

static void stray_settle(struct matching *matching, const struct stray *stray)
{
	if (is_earlier(stray)) {
		earlier_end(matching, stray);
	} else if (stray->earlier_bytes) {
		memory_grow(matching->doubts, matching->doubt_count, matching->doubt_capacity);
		matching->doubts[matching->doubt_count++] = *stray;
	} else {
		unknown_free_count(matching, stray);
	}
}

static void doubts_settle(struct matching *matching)
{
	for (size_t i = 0; i < matching->doubt_count; i++) {
		const struct stray *stray = &matching->doubts[i];
		if (stray->before_ns < matching->processes[stray->process].reading_ns)
			earlier_end(matching, stray);
		else
			unknown_free_count(matching, stray);
	}
}

static void strays_expire(struct matching *matching, int64_t time_ns)
{
	for (; matching->stray_first < matching->stray_count; matching->stray_first++) {
		const struct stray *stray = &matching->strays[matching->stray_first];
		if (stray->time_ns != INT64_MIN) {
			if ((uint64_t)time_ns - (uint64_t)stray->time_ns <= STAMP_SLACK_NS)
				return;
			stray_settle(matching, stray);
		}
	}
	matching->stray_first = matching->stray_count = 0;
}

/* TRACE_NONE, or which of the tables of annotated heaps' blocks the point is about. */
static uint32_t annotated_of(const struct matching *matching, const struct point *point)
{
	bool is_plain = point->live == &matching->processes[point->process].live;
	return is_plain ? TRACE_NONE : (uint32_t)(point->live - matching->annotated);
}

/* What the end of a block says that it had, and what is known of the one before it at its address: only while earlier blocks are being found. */
struct measure { uint64_t bytes; int64_t before_ns; };

static void stray_add(struct matching *matching, const struct point *point, unsigned end, struct measure measure)
{
	strays_expire(matching, point->time_ns);
	memory_grow(matching->strays, matching->stray_count, matching->stray_capacity);
	matching->strays[matching->stray_count++] = (struct stray){
		.time_ns = point->time_ns, .address = point->address, .process = point->process, .thread = point->thread, .annotated = annotated_of(matching, point),
		.site = site_of(matching, point->block, point->row), .earlier_bytes = measure.bytes, .before_ns = measure.before_ns,
		.heap = point->block->heap[point->row], .end = (uint8_t)end};
}

/* The end, stamped a little early, of the block that begins here; it is taken from the strays. An earlier block's end needs no other. */
static struct stray *stray_take(struct matching *matching, const struct point *point, struct stray *taken)
{
	if (matching->stray_first == matching->stray_count)
		return NULL;
	uint32_t annotated = annotated_of(matching, point);
	strays_expire(matching, point->time_ns);
	for (size_t i = matching->stray_first; i < matching->stray_count; i++) {
		struct stray *stray = &matching->strays[i];
		if (stray->time_ns == INT64_MIN || is_earlier(stray) || stray->address != point->address || stray->process != point->process ||
		    stray->annotated != annotated || stray->thread == point->thread)
			continue;
		*taken = *stray;
		stray->time_ns = INT64_MIN;
		return taken;
	}
	return NULL;
}

/* ---- forks ---- */

/*
 * The row of the address that was current in the process at a time, or HEAP_NONE. A row that ended before that time is accepted:
 * a child notices that it was forked at its first heap call, so its start may lie after its fork, and its parent goes on meanwhile.
 */
static uint32_t history_find(const struct matching *matching, const struct live *live, uint64_t address, int64_t time_ns, bool *is_known)
{
	const struct live_cell *cell = live_find(live, address);
	*is_known = false;
	for (uint32_t at = cell ? cell->current : HEAP_NONE; at != HEAP_NONE;) {
		if (at & COPY_BIT) {
			const struct copy *copy = &matching->copies[at & ~COPY_BIT];
			*is_known = true;
			return copy->end_ns > time_ns ? copy->original : HEAP_NONE;
		}
		if (matching->history[at].birth_ns <= time_ns) {
			*is_known = true;
			return at;
		}
		at = matching->history[at].before;
	}
	return HEAP_NONE;
}

/* The heap of a process's parent with that heap's handle and name; TRACE_NONE: none. */
static uint32_t inherited_heap(const struct matching *matching, uint32_t heap, uint32_t parent)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	uint32_t *found = &matching->inherited[heap], i = matching->processes[parent].first_heap;
	if (*found != INHERITED_UNKNOWN)
		return *found;
	while (i != TRACE_NONE && (dictionary->heaps[i].handle != dictionary->heaps[heap].handle || strcmp(dictionary->heaps[i].name, dictionary->heaps[heap].name)))
		i = matching->next_heap[i];
	return *found = i;
}

/* Where the parent's blocks of the same kind are; NULL: nowhere. The heap becomes the parent's. */
static const struct live *inherited_live(const struct matching *matching, const struct point *point, uint32_t parent, uint32_t *heap)
{
	if (point->live == &matching->processes[point->process].live)
		return &matching->processes[parent].live;
	*heap = *heap < matching->table->dictionary->heap_count ? inherited_heap(matching, *heap, parent) : TRACE_NONE;
	return *heap == TRACE_NONE ? NULL : &matching->annotated[*heap];
}

static uint32_t inherited_find(const struct matching *matching, const struct point *point)
{
	uint32_t process = point->process, heap = point->block->heap[point->row];
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	int64_t time_ns = INT64_MAX;
	/* Bounded by the number of processes, whatever the file says about who forked whom. */
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		uint32_t parent = matching->processes[process].forked_from;
		if (parent == TRACE_NONE)
			break;
		if (dictionary->processes[process].start_ns < time_ns)
			time_ns = dictionary->processes[process].start_ns;
		bool is_known;
		const struct live *live = inherited_live(matching, point, parent, &heap);
		if (!live)
			break;
		uint32_t found = history_find(matching, live, point->address, time_ns, &is_known);
		if (is_known)
			return found;
		process = parent;
	}
	return HEAP_NONE;
}

/* A child gives back a block of its parent: only the child's copy ends. False when there is no such block. */
static bool copy_end(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	if (process->forked_from == TRACE_NONE || live_find(point->live, point->address))
		return false;
	uint32_t original = inherited_find(matching, point);
	if (original == HEAP_NONE || matching->copy_count >= COPY_BIT - 1)
		return false;
	memory_grow(matching->copies, matching->copy_count, matching->copy_capacity);
	matching->copies[matching->copy_count] = (struct copy){point->time_ns, original};
	live_add(point->live, point->address)->current = (uint32_t)matching->copy_count++ | COPY_BIT;
	if (matching->history[original].is_nested)
		return true;
	uint64_t size_bytes = matching->history[original].size_bytes;
	matching->table->processes[point->process].inherited_freed++;
	process->left_count -= process->left_count > 0;
	process->left_bytes -= size_bytes < process->left_bytes ? size_bytes : process->left_bytes;
	return true;
}

static void process_fork(struct matching *matching, uint32_t child)
{
	uint32_t parent = matching->processes[child].forked_from;
	const struct heap_process *from = &matching->table->processes[parent];
	struct heap_process *process = &matching->table->processes[child];
	process->inherited_count = from->live_count + matching->processes[parent].left_count;
	process->inherited_bytes = from->live_bytes + matching->processes[parent].left_bytes;
	matching->processes[child].left_count = process->inherited_count;
	matching->processes[child].left_bytes = process->inherited_bytes;
}

/* ---- what lies in what ---- */

static bool row_is_live(void *context, uint32_t row)
{
	return is_live(context, row);
}

/* The live block of an allocator around an address, or HEAP_NONE. */
static uint32_t plain_around(struct matching *matching, struct matching_process *process, uint64_t address)
{
	uint64_t start;
	while (nest_starts_last(&process->nest.plain, address, &start)) {
		const struct live_cell *cell = live_find(&process->live, start);
		const struct heap_allocation *row = cell ? live_row(matching, cell->current) : NULL;
		if (row)
			return address - start < row->size_bytes ? cell->current : HEAP_NONE;
		nest_starts_remove(&process->nest.plain, start);
	}
	return HEAP_NONE;
}

/* What the block that begins here lies in: its allocation, or HEAP_NONE; in *around where that is of an annotated heap. */
static uint32_t container_find(struct matching *matching, const struct point *point, struct nest_span **around)
{
	struct matching_process *process = &matching->processes[point->process];
	*around = nest_around(&process->nest, point->address, row_is_live, matching);
	return *around ? (*around)->row : plain_around(matching, process, point->address);
}

/* Blocks that an allocator took for this one before it told of it, as one does that has its own pools: they lie in it. */
static void nested_adopt(struct matching *matching, const struct point *point, uint32_t id)
{
	struct nest *nest = &matching->processes[point->process].nest;
	struct heap_allocation *row = live_row(matching, id);
	uint64_t last = point->address + row->size_bytes - 1;
	for (struct nest_span *span; row->size_bytes && last >= point->address;) {
		span = nest_last_within(nest, point->address, last, row_is_live, matching);
		if (!span)
			break;
		struct heap_allocation *inner = live_row(matching, span->row);
		row->flags |= HEAP_AROUND;
		if (!(inner->flags & HEAP_NESTED)) {
			struct heap_process *process = &matching->table->processes[point->process];
			inner->flags |= HEAP_NESTED;
			matching->table->nested_count++;
			process->live_count--;
			process->live_bytes -= inner->size_bytes;
			level_change(&matching->level, point->time_ns, 0 - (uint64_t)inner->size_bytes);
			/* Up to now it was counted. */
			matching->level.has_gone_back = true;
		}
		if (span->heap != TRACE_NONE && matching->table->inside[span->heap] == TRACE_NONE)
			matching->table->inside[span->heap] = row->heap;
		if (span->address == point->address)
			break;
		last = span->address - 1;
	}
}

/* Where the new allocation lies, and what may lie in it from now on. */
static void nest_note(struct matching *matching, const struct point *point, uint32_t id, uint32_t container, const struct nest_span *around)
{
	struct matching_process *process = &matching->processes[point->process];
	uint32_t heap = point->block->heap[point->row];
	if (point->live == &process->live) {
		nest_starts_add(&process->nest.plain, point->address);
		nested_adopt(matching, point, id);
		return;
	}
	heap = heap < matching->table->dictionary->heap_count ? heap : TRACE_NONE;
	nest_add(&process->nest, &(struct nest_span){.address = point->address, .bytes = point->block->size[point->row], .row = id, .heap = heap}, around);
	struct heap_allocation *outer = container == HEAP_NONE ? NULL : live_row(matching, container);
	if (!outer)
		return;
	outer->flags |= HEAP_AROUND;
	if (heap != TRACE_NONE && matching->table->inside[heap] == TRACE_NONE && outer->heap != heap)
		matching->table->inside[heap] = outer->heap;
}

/* The block at the point's address is gone, and all that lay in its bytes with it. */
static void nested_end(struct matching *matching, const struct point *point, uint64_t bytes)
{
	struct matching_process *process = &matching->processes[point->process];
	uint32_t site = site_of(matching, point->block, point->row);
	uint64_t last = point->address + (bytes ? bytes - 1 : 0);
	for (struct nest_span *span; (span = nest_last_within(&process->nest, point->address, last, row_is_live, matching));) {
		uint32_t place = span->heap == TRACE_NONE ? matching->table->dictionary->heap_count + point->process : span->heap;
		struct live *live = &matching->annotated[place];
		struct live_cell *cell = live_find(live, span->address);
		uint64_t address = span->address;
		allocation_end(matching, span->row, HEAP_END_DESTROY, point->time_ns, site, point->thread);
		/* Its own end may come still. */
		if (cell && cell->current == span->row)
			cell->other = span->row;
		nest_at(&process->nest, address, row_is_live, matching);
	}
}

/* ---- points ---- */

/* What a pool tells between two calls of an allocator does not come between them, nor the other way round. */
static uint32_t *last_made(struct matching *matching, const struct point *point)
{
	bool is_annotated = point->live != &matching->processes[point->process].live;
	return &matching->last_made[point->thread][is_annotated];
}

/* What comes with each call of a pool that threads share. */
static bool is_aside(uint8_t kind)
{
	return kind == EVENT_LOCK || kind == EVENT_UNLOCK || kind == EVENT_PROTECT;
}

/* An earlier block was found where something has happened since the attach; an end does not count that was over when the reading began. */
static bool is_settled(const struct matching *matching, const struct point *point)
{
	const struct matching_process *process = &matching->processes[point->process];
	const struct live_cell *cell = live_find(&process->live, point->address);
	const uint32_t *measured = map_find(&process->measured, point->address);
	return (measured && process->measured_ns[*measured] >= process->reading_ns) || (cell && is_live(matching, cell->current));
}

static void reading_note(struct matching *matching, const struct point *point)
{
	if (!(point->block->flags[point->row] & EVENT_NO_DURATION))
		matching->processes[point->process].reading_ns = (int64_t)((uint64_t)point->time_ns - (uint64_t)point->block->duration_ns[point->row]);
}

static void point_begin(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	if (point->block->kind[point->row] == EVENT_EARLIER) {
		reading_note(matching, point);
		if (is_settled(matching, point))
			return;
	}
	struct nest_span *around = NULL;
	uint32_t container = matching->is_annotation && point->live != &process->live ? container_find(matching, point, &around) : HEAP_NONE;
	/* In a sample what it lies in may be missing. */
	bool is_nested = container != HEAP_NONE || (matching->table->sample_bytes && point->live != &process->live);
	uint32_t id = allocation_add(matching, point, is_nested);
	if (matching->is_annotation)
		nest_note(matching, point, id, container, around);
	struct live_cell *cell = live_add(point->live, point->address);
	if (cell->other != HEAP_NONE)
		settle_conflict(matching, cell->other, cell->current);
	cell->other = cell->current != HEAP_NONE && is_live(matching, cell->current) ? cell->current : HEAP_NONE;
	const struct heap_allocation *row = &matching->ring[id % RING_ROWS];
	if (process->keeps_history)
		matching->history[id] = (struct history){cell->current, is_nested, row->size_bytes, row->birth_ns};
	cell->current = id;
	*last_made(matching, point) = point->block->flags[point->row] & EVENT_FOLDED_AFTER ? HEAP_NONE : id;
	struct stray stray;
	if (cell->other == HEAP_NONE && stray_take(matching, point, &stray)) {
		allocation_end(matching, id, stray.end, point->time_ns, stray.site, stray.thread);
		if (!process->keeps_history)
			live_remove(point->live, cell);
	}
}

/* Which block of the cell this end is of: the older one when two are there and that is possible. */
static uint32_t point_choose(struct matching *matching, struct live_cell *cell, const struct point *point, bool *is_older)
{
	uint32_t older = cell->other;
	*is_older = false;
	if (older == HEAP_NONE)
		return cell->current;
	const struct heap_allocation *newer = live_row(matching, cell->current);
	cell->other = HEAP_NONE;
	if (newer->thread != point->thread && (uint64_t)point->time_ns - (uint64_t)newer->birth_ns <= STAMP_SLACK_NS) {
		*is_older = true;
		return older;
	}
	settle_conflict(matching, older, cell->current);
	return cell->current;
}

/* A block that ended with the one around it: an allocator that tells of its pools does so after its own free has begun. */
static bool has_ended_before(const struct live_cell *cell)
{
	return cell && cell->other != HEAP_NONE && cell->other == cell->current;
}

/* 0: nothing. */
static uint64_t measure_of(const struct matching *matching, const struct point *point)
{
	const struct trace_block *block = point->block;
	uint32_t row = point->row;
	if (block->kind[row] == EVENT_FREE && block->usable[row])
		return block->usable[row];
	if (!block->argument2[row])
		return 0;
	return matching->table->dictionary->entries[block->entry[row]].function == FUNCTION_REALLOC ? block->argument2[row] : 0;
}

/* When the call that is this end was over, or later: a Free's duration is not exact. */
static int64_t point_over(const struct point *point)
{
	const struct trace_block *block = point->block;
	uint32_t row = point->row;
	if (block->kind[row] != EVENT_REALLOC && block->flags[row] & EVENT_NO_DURATION)
		return INT64_MAX;
	uint64_t over_ns = (uint64_t)point->time_ns + (uint64_t)block->duration_ns[row];
	return (int64_t)(over_ns + (uint64_t)block->duration_ns[row] / DURATION_EXACTNESS + STAMP_SLACK_NS);
}

static struct measure measure_take(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	struct measure measure = {measure_of(matching, point), INT64_MIN};
	bool added = false;
	if (!measure.bytes)
		return measure;
	uint32_t *measured = map_add(&process->measured, point->address, &added);
	if (added) {
		memory_grow(process->measured_ns, process->measured_count, process->measured_capacity);
		*measured = (uint32_t)process->measured_count++;
	} else {
		measure.before_ns = process->measured_ns[*measured];
	}
	process->measured_ns[*measured] = point_over(point);
	return measure;
}

static void point_end(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	struct live_cell *cell = live_find(point->live, point->address);
	unsigned end = born_end(point->block, point->row);
	uint32_t made = *last_made(matching, point);
	struct heap_allocation *row = cell ? live_row(matching, cell->current) : NULL;
	struct measure measure = measure_take(matching, point);
	*last_made(matching, point) = HEAP_NONE;
	if (!row && has_ended_before(cell)) {
		cell->other = HEAP_NONE;
		return;
	}
	if (!row) {
		/* What a realloc took need not be in a sample. */
		bool may_be_missing = end == HEAP_END_REALLOC && matching->table->sample_bytes;
		if (!copy_end(matching, point) && !may_be_missing)
			stray_add(matching, point, end, measure);
		return;
	}
	bool is_older;
	uint32_t id = point_choose(matching, cell, point, &is_older);
	int64_t time_ns = is_older ? row->birth_ns : point->time_ns;
	bool is_around = row->flags & HEAP_AROUND && !is_older;
	uint64_t size_bytes = row->size_bytes;
	if (is_older)
		row = live_row(matching, id);
	/* The thread's very next event is hardly ever in a sample. */
	if (row && id == made && end == HEAP_END_FREE && !matching->table->sample_bytes)
		row->flags |= HEAP_TEMPORARY;
	if (end == HEAP_END_REALLOC)
		matching->last_taken[point->thread] = id;
	if (row)
		live_row_end(matching, id, row, end, time_ns, site_of(matching, point->block, point->row), point->thread);
	if (!is_older && !process->keeps_history)
		live_remove(point->live, cell);
	/* What grows where it is keeps what lies in it. */
	if (is_around && (end == HEAP_END_FREE || point->block->address[point->row] != point->address))
		nested_end(matching, point, size_bytes);
}

/* Everything that lies in a heap ends with it. Of heaps that are not annotated, that is rare enough for a look at every block. */
static void point_destroy(struct matching *matching, const struct point *point)
{
	struct live *live = point->live;
	uint32_t heap = point->block->heap[point->row], site = site_of(matching, point->block, point->row);
	if (heap == TRACE_NONE || point->block->flags[point->row] & EVENT_FAILED)
		return;
	for (size_t i = 0; live->cells && i < (size_t)1 << live->bits; i++) {
		struct live_cell *cell = &live->cells[i];
		const struct heap_allocation *row = cell->address ? live_row(matching, cell->current) : NULL;
		if (!row || row->heap != heap)
			continue;
		if (cell->other != HEAP_NONE)
			settle_conflict(matching, cell->other, cell->current);
		cell->other = HEAP_NONE;
		struct point block = *point;
		uint64_t size_bytes = row->size_bytes;
		bool is_around = row->flags & HEAP_AROUND;
		block.address = cell->address;
		allocation_end(matching, cell->current, HEAP_END_DESTROY, point->time_ns, site, point->thread);
		if (is_around)
			nested_end(matching, &block, size_bytes);
	}
	if (live != &matching->processes[point->process].live && !matching->processes[point->process].keeps_history)
		live_fini(live);
}

static void live_end(struct matching *matching, struct live *live, int64_t end_ns, bool is_open)
{
	for (size_t i = 0; live->cells && i < (size_t)1 << live->bits; i++) {
		struct live_cell *cell = &live->cells[i];
		if (!cell->address)
			continue;
		if (cell->other != HEAP_NONE)
			settle_conflict(matching, cell->other, cell->current);
		cell->other = HEAP_NONE;
		if (!is_open && is_live(matching, cell->current))
			allocation_end(matching, cell->current, HEAP_END_EXIT, end_ns, HEAP_NONE, HEAP_NONE);
	}
}

static void process_end(struct matching *matching, uint32_t id, bool is_open)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	struct matching_process *process = &matching->processes[id];
	int64_t end_ns = matching->table->processes[id].end_ns;
	live_end(matching, &process->live, end_ns, is_open);
	for (uint32_t heap = process->first_heap; matching->annotated && heap != TRACE_NONE; heap = matching->next_heap[heap])
		live_end(matching, &matching->annotated[heap], end_ns, is_open);
	if (matching->annotated)
		live_end(matching, &matching->annotated[dictionary->heap_count + id], end_ns, is_open);
	nest_fini(&process->nest);
	if (!process->keeps_history)
		live_fini(&process->live);
}

/* Forks and ends of processes that come before a point of this time. */
static void matching_advance(struct matching *matching, int64_t time_ns)
{
	for (;;) {
		const struct moment *start = &matching->starts[matching->next_start], *end = &matching->ends[matching->next_end];
		bool has_start = matching->next_start < matching->start_count && start->time_ns <= time_ns;
		bool has_end = matching->next_end < matching->end_count && end->time_ns < time_ns;
		if (has_start && (!has_end || start->time_ns <= end->time_ns)) {
			process_fork(matching, start->process);
			matching->next_start++;
		} else if (has_end) {
			process_end(matching, end->process, false);
			matching->processes[end->process].has_ended = true;
			matching->next_end++;
		} else {
			break;
		}
	}
	const struct moment *start = &matching->starts[matching->next_start], *end = &matching->ends[matching->next_end];
	int64_t start_ns = matching->next_start < matching->start_count ? start->time_ns : INT64_MAX;
	int64_t end_ns = matching->next_end < matching->end_count ? end->time_ns : INT64_MAX;
	matching->next_moment_ns = start_ns < end_ns ? start_ns : end_ns;
}

/* Where blocks are that the point's function tells of. */
static struct live *live_of(const struct matching *matching, const struct point *point)
{
	uint32_t heap = point->block->heap[point->row], entry = point->block->entry[point->row], known = matching->table->dictionary->heap_count;
	if (!matching->is_annotation || entry >= matching->table->dictionary->entry_count || !matching->is_annotation[entry])
		return &matching->processes[point->process].live;
	return &matching->annotated[heap < known ? heap : known + point->process];
}

static void matching_point(struct matching *matching, const struct trace_block *block, const struct heap_place *at)
{
	struct point point = {at->time_ns, 0, NULL, matching->table->dictionary->threads[block->thread].process, block->thread, block, at->row};
	if (at->time_ns >= matching->next_moment_ns)
		matching_advance(matching, at->time_ns);
	if (at->time_ns > matching->table->duration_ns)
		matching->table->duration_ns = at->time_ns;
	point.address = at->address;
	point.live = live_of(matching, &point);
	switch (at->kind) {
	case HEAP_POINT_BEGIN:
		point_begin(matching, &point);
		break;
	case HEAP_POINT_END:
		point_end(matching, &point);
		break;
	case HEAP_POINT_NONE:
		if (!is_aside(block->kind[at->row]))
			*last_made(matching, &point) = HEAP_NONE;
		if (block->kind[at->row] == EVENT_DESTROY)
			point_destroy(matching, &point);
		break;
	}
}

/* ---- event blocks that were matched by themselves ---- */

/* What it ends was allocated long ago and lies anywhere in memory. */
static void plain_expect(const struct matching *matching, const struct within *within, uint32_t i)
{
	const struct within_end *ends = &within->ends[i];
	if (i + 2 * AHEAD < within->end_count && ends[2 * AHEAD].id < matching->written)
		survivors_expect(matching->survivors, ends[2 * AHEAD].id);
	if (i + AHEAD < within->end_count && ends[AHEAD].id < matching->written)
		survivors_expect_more(matching->survivors, ends[AHEAD].id);
}

/* What the event block ends: false when some of it is not live, or not only it. */
static bool plain_find_ends(struct matching *matching, const struct live *live, struct within *within)
{
	struct within_end *ends = within->ends;
	for (uint32_t i = 0; i < within->end_count; i++) {
		if (i + AHEAD < within->end_count)
			live_expect(live, ends[i + AHEAD].address);
		const struct live_cell *cell = live_find(live, ends[i].address);
		if (!cell || cell->other != HEAP_NONE)
			return false;
		ends[i].id = cell->current;
	}
	for (uint32_t i = 0; i < within->end_count; i++) {
		plain_expect(matching, within, i);
		if (!is_live(matching, ends[i].id))
			return false;
	}
	return true;
}

static bool plain_is_fresh(const struct live *live, const struct within *within)
{
	for (uint32_t i = 0; i < within->fresh_count; i++) {
		if (i + AHEAD < within->fresh_count)
			live_expect(live, within->fresh[i + AHEAD]);
		if (live_find(live, within->fresh[i]))
			return false;
	}
	return true;
}

/* Whether the run could only come to what its event block tells by itself; what it ends is known then. */
static bool run_is_plain(struct matching *matching, const struct heap_run *run)
{
	struct within *within = run->within;
	struct matching_process *process = &matching->processes[matching->table->dictionary->threads[run->block->thread].process];
	if (!within || !within->is_plain || process->keeps_history || matching->is_annotation || run->places[run->count - 1].time_ns > matching->until_ns)
		return false;
	if (run->places[0].time_ns >= matching->next_moment_ns)
		matching_advance(matching, run->places[0].time_ns);
	strays_expire(matching, run->places[0].time_ns);
	if (matching->stray_count || run->places[run->count - 1].time_ns >= matching->next_moment_ns)
		return false;
	return plain_find_ends(matching, &process->live, within) && plain_is_fresh(&process->live, within);
}

static void plain_end(struct matching *matching, struct within *within, uint32_t thread)
{
	struct live *live = &matching->processes[matching->table->dictionary->threads[thread].process].live;
	for (uint32_t i = 0; i < within->end_count; i++) {
		const struct within_end *end = &within->ends[i];
		if (i + AHEAD < within->end_count)
			live_expect(live, end[AHEAD].address);
		plain_expect(matching, within, i);
		struct heap_allocation *row = live_row(matching, end->id);
		if (!end->place && end->end == HEAP_END_FREE && end->id == matching->last_made[thread][0])
			row->flags |= HEAP_TEMPORARY;
		within->changes[end->place] = 0 - (uint64_t)row->size_bytes;
		within->sum_bytes -= row->size_bytes;
		row_end(matching, end->id, row, end->end, end->time_ns, within->site_ids[end->site], thread);
		live_remove(live, live_find(live, end->address));
	}
}

/* What reallocs of the event block took. Both points of a realloc are in the same one. */
static void plain_take(const struct within *within, uint32_t first)
{
	for (uint32_t i = 0; i < within->taken_count; i++) {
		uint32_t from = within->taken[i].from;
		within->details[within->taken[i].row].previous = from < WITHIN_END ? first + from : within->ends[from - WITHIN_END].id;
	}
}

/* What begins in the event block and lives on. */
static void plain_begin(struct matching *matching, const struct within *within, uint32_t first, uint32_t thread)
{
	uint32_t process = matching->table->dictionary->threads[thread].process;
	struct live *live = &matching->processes[process].live;
	for (uint32_t i = 0; i < within->open_count; i++) {
		uint32_t row = within->open[i];
		if (i + AHEAD < within->open_count)
			live_expect(live, within->details[within->open[i + AHEAD]].address);
		struct heap_allocation allocation = within->rows[row];
		allocation.site = within->site_ids[allocation.site];
		live_add(live, within->details[row].address)->current = first + row;
		survivors_add(matching->survivors, first + row, &allocation);
	}
	matching->table->processes[process].live_count += within->open_count;
	matching->table->processes[process].live_bytes += within->open_bytes;
}

/* Only where it can have been more than it ever was, each change is looked at. */
static void plain_level(struct level *level, const struct within *within, const struct heap_run *run)
{
	int64_t first_ns = run->places[0].time_ns;
	if (level->live_bytes + within->most_bytes > level->peak.bytes) {
		for (uint32_t i = 0; i < run->count; i++)
			level_change(level, run->places[i].time_ns, within->changes[i]);
		return;
	}
	level_change(level, first_ns, within->sum_bytes);
	level->time_ns = run->places[run->count - 1].time_ns;
}

static void within_sum_add(struct heap_numbers *numbers, const struct within_sum *sum)
{
	numbers->total_count += sum->count;
	numbers->recorded_count += sum->count;
	numbers->total_bytes += sum->bytes;
	numbers->outstanding_count += sum->count - sum->given_count;
	numbers->outstanding_bytes += sum->bytes - sum->given_bytes;
	numbers->open_count += sum->count - sum->given_count;
	numbers->realloc_count += sum->realloc_count;
	numbers->realloc_moved_count += sum->moved_count;
	numbers->temporary_count += sum->temporary_count;
}

static void matching_plain(struct matching *matching, const struct heap_run *run)
{
	struct heap_table *table = matching->table;
	struct within *within = run->within;
	uint32_t thread = run->block->thread;
	int64_t last_ns = run->places[run->count - 1].time_ns;
	while (matching->written < table->count)
		ring_write(matching);
	uint32_t first = table->count;
	for (uint32_t i = 0; i < within->site_count; i++) {
		uint32_t site = within->site_ids[i] = site_add(matching, within->sites[i]);
		within_sum_add(&table->sums.numbers[site], &within->sums[i]);
		if (within->sums[i].count)
			site_use(matching, site, thread);
	}
	plain_end(matching, within, thread);
	plain_take(within, first);
	plain_begin(matching, within, first, thread);
	plain_level(&matching->level, within, run);
	matching->last_taken[thread] = HEAP_NONE;
	matching->last_made[thread][0] = within->last_made == HEAP_NONE ? HEAP_NONE : first + within->last_made;
	table->duration_ns = last_ns > table->duration_ns ? last_ns : table->duration_ns;
	table->count += within->count;
	matching->written = table->count;
	survivors_complete(matching->survivors, matching->written);
	packing_add_within(matching->packing, heap_stream_keep(matching->stream));
}

/* The survivor that a point ends, if its cell is there: -1 when not. */
static int64_t survivor_at(const struct matching *matching, const struct live *live, const struct heap_place *at)
{
	const struct live_cell *cell = at->kind == HEAP_POINT_END ? live_find(live, at->address) : NULL;
	return cell && cell->current < matching->written ? (int64_t)cell->current : -1;
}

/* Each step to a block that was allocated long ago is a wait for memory: they are taken early, one after the other. */
static void points_expect(const struct matching *matching, const struct live *live, const struct heap_place *places, uint32_t known)
{
	int64_t id;
	if (3 * AHEAD < known)
		live_expect(live, places[3 * AHEAD].address);
	if (live->bits < LARGE_BITS)
		return;
	if (2 * AHEAD < known && (id = survivor_at(matching, live, &places[2 * AHEAD])) >= 0)
		survivors_expect(matching->survivors, (uint32_t)id);
	if (AHEAD < known && (id = survivor_at(matching, live, &places[AHEAD])) >= 0)
		survivors_expect_more(matching->survivors, (uint32_t)id);
}

static void matching_run(struct matching *matching, const struct heap_run *run)
{
	const struct live *live = &matching->processes[matching->table->dictionary->threads[run->block->thread].process].live;
	uint32_t i = 0, first = 0;
	if (run_is_plain(matching, run)) {
		matching_plain(matching, run);
		i = run->count;
	}
	while (first < run->count && run->places[first].time_ns <= matching->from_ns)
		first++;
	for (i = i > first ? i : first; i < run->count && run->places[i].time_ns <= matching->until_ns; i++) {
		points_expect(matching, live, &run->places[i], run->known - i);
		matching_point(matching, run->block, &run->places[i]);
	}
	/* A thread may have gone back in time. */
	if (i > first && run->places[i - 1].time_ns > matching->passed_ns)
		matching->passed_ns = run->places[i - 1].time_ns;
}

/* ---- setting up ---- */

static int moment_compare(const void *a, const void *b)
{
	const struct moment *left = a, *right = b;
	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns ? -1 : 1;
	return (left->process > right->process) - (left->process < right->process);
}

static bool gap_lost_frees(const struct trace_gap *gap)
{
	return gap->count[EVENT_FREE] || gap->count[EVENT_REALLOC] || gap->count[EVENT_DESTROY];
}

/* Room for more rows; all bytes of those that were not known are `fill`. */
static void *rows_extend(void *rows, size_t known, size_t count, size_t size, int fill)
{
	char *larger = memory_resize(rows, count, size);
	memset(larger + known * size, fill, (count - known) * size);
	return larger;
}

/* Of what the trace had at the look before, nothing is gone. */
static void matching_extend(struct matching *matching)
{
	struct heap_table *table = matching->table;
	const struct trace_dictionary *dictionary = table->dictionary;
	struct known known = matching->known, now = {dictionary->process_count, dictionary->thread_count, dictionary->node_count + 1, dictionary->heap_count};
	assert(now.processes >= known.processes && now.threads >= known.threads && now.nodes >= known.nodes && now.heaps >= known.heaps);
#define EXTEND(array, what, fill) array = rows_extend(array, known.what, now.what, sizeof(*(array)), fill)
	EXTEND(table->processes, processes, 0);
	EXTEND(matching->processes, processes, 0);
	EXTEND(matching->last_made, threads, 0xff);
	EXTEND(matching->last_taken, threads, 0xff);
	EXTEND(matching->site_notes, nodes, 0xff);
	EXTEND(table->inside, heaps, 0xff);
#undef EXTEND
	for (uint32_t i = known.processes; i < now.processes; i++)
		matching->processes[i].reading_ns = INT64_MIN;
	matching->known = now;
}

static void matching_read_gaps(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	free(matching->gaps);
	matching->gaps = memory_zeroed(dictionary->gap_count, sizeof(*matching->gaps));
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		matching->processes[i].gap_count = 0;
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		if (gap_lost_frees(&dictionary->gaps[i]) && dictionary->gaps[i].process < dictionary->process_count)
			matching->processes[dictionary->gaps[i].process].gap_count++;
	const struct trace_gap **next = matching->gaps;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		matching->processes[i].gaps = next;
		next += matching->processes[i].gap_count;
		matching->processes[i].gap_count = 0;
		matching->table->processes[i].last_loss_ns = INT64_MIN;
	}
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		if (!gap_lost_frees(gap) || gap->process >= dictionary->process_count)
			continue;
		struct matching_process *process = &matching->processes[gap->process];
		process->gaps[process->gap_count++] = gap;
		if (gap->to_ns > matching->table->processes[gap->process].last_loss_ns)
			matching->table->processes[gap->process].last_loss_ns = gap->to_ns;
	}
}

/* A process cannot end before its last point: what the file says is corrected by what its blocks say. */
static void ends_read(const struct matching *matching, int64_t *ends_ns)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		ends_ns[i] = dictionary->processes[i].end == TRACE_END_OPEN ? INT64_MIN : dictionary->processes[i].end_ns;
	for (uint32_t i = 0; i < trace_block_count(matching->table->trace); i++) {
		struct trace_block head;
		trace_block_head(matching->table->trace, i, &head);
		int64_t *end_ns = &ends_ns[dictionary->threads[head.thread].process];
		if (head.last_ns > *end_ns)
			*end_ns = head.last_ns;
	}
}

/* Whether what was known of ends is so, and what was not known lies behind what was matched. */
static bool ends_hold(const struct matching *matching, const int64_t *ends_ns)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		bool is_open = dictionary->processes[i].end == TRACE_END_OPEN;
		bool is_as_known = matching->processes[i].is_end_known != is_open && (is_open || ends_ns[i] == matching->table->processes[i].end_ns);
		bool is_to_come = !matching->processes[i].has_ended && (is_open || ends_ns[i] > matching->passed_ns);
		if (!is_as_known && !is_to_come)
			return false;
	}
	return true;
}

static int matching_read_ends(struct matching *matching, struct diag *diag)
{
	uint32_t count = matching->table->dictionary->process_count;
	int64_t *ends_ns = memory_zeroed(count, sizeof(*ends_ns));
	ends_read(matching, ends_ns);
	bool do_hold = matching->passed_ns == INT64_MIN || ends_hold(matching, ends_ns);
	for (uint32_t i = 0; i < count; i++) {
		matching->table->processes[i].end_ns = ends_ns[i];
		matching->processes[i].is_end_known = matching->table->dictionary->processes[i].end != TRACE_END_OPEN;
	}
	free(ends_ns);
	return do_hold ? 0 : diag_fail(diag, ESTALE, "the end of a process was told late");
}

static void matching_read_processes(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	uint32_t count = dictionary->process_count;
	free(matching->starts);
	free(matching->ends);
	matching->starts = memory_zeroed((size_t)count + 1, sizeof(*matching->starts));
	matching->ends = memory_zeroed((size_t)count + 1, sizeof(*matching->ends));
	matching->start_count = matching->end_count = matching->next_start = matching->next_end = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		bool is_forked = process->forked_from < count && process->forked_from != i;
		matching->processes[i].forked_from = is_forked ? process->forked_from : TRACE_NONE;
		if (is_forked) {
			matching->processes[i].keeps_history = matching->processes[process->forked_from].keeps_history = true;
			matching->starts[matching->start_count++] = (struct moment){process->start_ns, i};
		}
		if (process->end != TRACE_END_OPEN && !matching->processes[i].has_ended)
			matching->ends[matching->end_count++] = (struct moment){matching->table->processes[i].end_ns, i};
	}
	qsort(matching->starts, matching->start_count, sizeof(*matching->starts), moment_compare);
	qsort(matching->ends, matching->end_count, sizeof(*matching->ends), moment_compare);
	matching->next_moment_ns = INT64_MIN;
}

static bool has_annotations(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		if (dictionary->entries[i].function >= FUNCTION_FIRST_ANNOTATION)
			return true;
	return false;
}

static void matching_read_annotations(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	size_t heaps = dictionary->heap_count;
	if (!has_annotations(dictionary))
		return;
	matching->is_annotation = memory_zeroed(dictionary->entry_count, sizeof(*matching->is_annotation));
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		matching->is_annotation[i] = dictionary->entries[i].function >= FUNCTION_FIRST_ANNOTATION;
	matching->annotated = memory_zeroed(heaps + dictionary->process_count, sizeof(*matching->annotated));
	matching->inherited = memory_resize(NULL, heaps, sizeof(*matching->inherited));
	matching->next_heap = memory_resize(NULL, heaps, sizeof(*matching->next_heap));
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		matching->processes[i].first_heap = TRACE_NONE;
	for (uint32_t i = dictionary->heap_count; i-- > 0;) {
		struct matching_process *process = &matching->processes[dictionary->heaps[i].process];
		matching->inherited[i] = INHERITED_UNKNOWN;
		matching->next_heap[i] = process->first_heap;
		process->first_heap = i;
	}
}

/* Address space for the most rows that can come; the kernel gives memory as they do. */
static struct history *history_reserve(size_t count)
{
	void *memory = mmap(NULL, (count + 1) * sizeof(struct history), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

struct matching *matching_new(const struct heap_build *how)
{
	struct matching *matching = memory_zeroed(1, sizeof(*matching));
	struct heap_table *table = matching->table = memory_zeroed(1, sizeof(*table));
	matching->how = *how;
	groups_begin(&table->groups, how->fd, how->reserved_bytes);
	table->is_damaged = memory_zeroed(1, sizeof(*table->is_damaged));
	matching->passed_ns = INT64_MIN;
	matching->ring = memory_resize(NULL, RING_ROWS, sizeof(*matching->ring));
	matching->ring_details = memory_resize(NULL, RING_ROWS, sizeof(*matching->ring_details));
	matching->survivors = survivors_new(&table->groups);
	matching->packing = packing_new(&table->groups);
	return matching;
}

/* ---- looks at the trace ---- */

static int matching_reserve(struct matching *matching, struct diag *diag)
{
	const struct heap_table *table = matching->table;
	if (table->dictionary->event_count >= COPY_BIT - 1)
		return diag_fail(diag, EFBIG, "cannot match more than %u events", COPY_BIT - 2);
	matching->most = (size_t)(table->dictionary->event_count - table->dictionary->folded_count);
	survivors_reserve(matching->survivors, matching->most);
	matching->history = matching->start_count ? history_reserve(matching->most) : NULL;
	if (matching->start_count && !matching->history)
		return diag_fail(diag, ENOMEM, "cannot match %zu events: no address space for them", matching->most);
	return 0;
}

/* What rows would have had to be remembered for from the beginning, and what is told of a time long after it. */
static int matching_check_growth(const struct matching *matching, struct diag *diag)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	bool has_losses = false;
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		has_losses |= gap_lost_frees(&dictionary->gaps[i]);
	const struct { bool is_there; const char *what; } reasons[] = {
		{matching->start_count > 0, "a process was forked"},
		{has_annotations(dictionary), "a program tells of heaps of its own"},
		{has_losses, "events were lost"},
		{matching->table->sample_bytes > 0, "it is a sample"},
		{dictionary->fold_count > 0, "some of it is in sums"},
	};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].is_there)
			return diag_fail(diag, ESTALE, "%s", reasons[i].what);
	return 0;
}

static int matching_read(struct matching *matching, const struct trace *trace, bool is_growing, struct diag *diag)
{
	struct heap_table *table = matching->table;
	table->trace = trace;
	table->dictionary = trace_dictionary(trace);
	table->duration_ns = matching->how.until_ns ? *matching->how.until_ns : table->dictionary->duration_ns;
	table->sample_bytes = heap_sample_bytes(table->dictionary);
	matching_extend(matching);
	matching_read_gaps(matching);
	int error = matching_read_ends(matching, diag);
	if (error)
		return error;
	matching_read_processes(matching);
	if (is_growing && (error = matching_check_growth(matching, diag)))
		return error;
	matching_read_annotations(matching);
	return matching_reserve(matching, diag);
}

static int matching_all(struct matching *matching, struct diag *diag)
{
	const struct heap_build *how = &matching->how;
	struct heap_run run;
	int status;
	while ((status = heap_stream_run(matching->stream, &run, diag)) > 0 && run.places[0].time_ns <= matching->until_ns) {
		matching_run(matching, &run);
		matching->done += run.count;
		if (!how->progress || matching->done - matching->told < PROGRESS_POINTS)
			continue;
		how->progress(how->cookie, matching->done, matching->most);
		matching->told = matching->done;
	}
	return status < 0 ? status : 0;
}

static int matching_go_on(struct matching *matching, const struct trace *trace, int64_t until_ns, bool is_part, struct diag *diag)
{
	bool is_growing = is_part || matching->passed_ns != INT64_MIN;
	int error = matching_read(matching, trace, is_growing, diag);
	if (error)
		return error;
	/* What a sample says takes all of the table to tell. */
	bool is_by_points = matching->table->sample_bytes || matching->how.until_ns;
	matching->from_ns = matching->passed_ns;
	int64_t from_ns = is_growing && matching->from_ns < INT64_MAX ? matching->from_ns + 1 : INT64_MIN;
	matching->until_ns = is_part ? heap_stream_cut(trace, from_ns, until_ns) : until_ns;
	matching->stream = heap_stream_new(trace, is_by_points ? HEAP_ORDER_POINTS : HEAP_ORDER_MATCHED, from_ns, matching->until_ns);
	packing_follow(matching->packing, matching->stream);
	error = matching_all(matching, diag);
	packing_follow(matching->packing, NULL);
	heap_stream_free(matching->stream);
	matching->stream = NULL;
	return error;
}

int matching_look(struct matching *matching, const struct trace *trace, int64_t until_ns, struct diag *diag)
{
	return matching_go_on(matching, trace, until_ns, true, diag);
}

int64_t matching_passed_ns(const struct matching *matching)
{
	return matching->passed_ns;
}

/* ---- finishing ---- */

/* As a rule it is known; contradictions tell of earlier times. */
static void matching_find_peak(struct matching *matching)
{
	struct heap_table *table = matching->table;
	struct heap_filter all;
	level_settle(&matching->level);
	table->peak = matching->level.peak;
	if (!matching->level.has_gone_back)
		return;
	heap_filter_init_for(&all, table);
	heap_peaks(&table->peak, 1, table, &all, (struct heap_range){0, table->duration_ns});
	heap_filter_fini(&all);
}

/* Where it takes more than beginnings and ends to tell, they are not known. */
static void matching_finish_sums(struct matching *matching)
{
	struct heap_table *table = matching->table;
	bool has_losses = false;
	for (uint32_t i = 0; i < table->dictionary->process_count; i++)
		has_losses |= table->processes[i].last_loss_ns != INT64_MIN;
	heap_uses_sort(table->sums.uses, table->sums.use_count);
	if (!has_losses && !matching->level.has_gone_back && !table->sample_bytes && !matching->is_annotation)
		return;
	free(table->sums.numbers);
	free(table->sums.uses);
	table->sums = (struct heap_sums){.numbers = NULL};
}

static void matching_finish(struct matching *matching)
{
	struct heap_table *table = matching->table;
	matching_advance(matching, matching->until_ns);
	strays_expire(matching, INT64_MAX);
	doubts_settle(matching);
	for (uint32_t i = 0; i < table->dictionary->process_count; i++)
		if (table->dictionary->processes[i].end == TRACE_END_OPEN)
			process_end(matching, i, true);
	/* Those that end later. */
	for (; matching->next_end < matching->end_count; matching->next_end++)
		process_end(matching, matching->ends[matching->next_end].process, true);
	for (uint32_t i = 0; i < table->dictionary->sum_count; i++)
		site_add(matching, heap_sum_site(&table->dictionary->sums[i]));
	if (table->nested_count)
		site_add(matching, (struct heap_site){0, HEAP_OVERHEAD});
	while (matching->written < table->count)
		ring_write(matching);
	packing_finish(matching->packing);
	survivors_finish(matching->survivors, table->duration_ns);
	groups_finish(&table->groups);
	matching_find_peak(matching);
	matching_finish_sums(matching);
	heap_folded_find_sites(table);
	for (uint32_t i = 0; i < table->dictionary->fold_count; i++) {
		table->unknown_frees += table->dictionary->folds[i].unknown_frees;
		table->order_conflicts += table->dictionary->folds[i].order_conflicts;
	}
}

void matching_free(struct matching *matching)
{
	if (!matching)
		return;
	packing_free(matching->packing);
	for (uint32_t i = 0; i < matching->known.processes; i++) {
		live_fini(&matching->processes[i].live);
		nest_fini(&matching->processes[i].nest);
		map_fini(&matching->processes[i].measured);
		free(matching->processes[i].measured_ns);
	}
	survivors_free(matching->survivors);
	for (uint32_t i = 0; matching->annotated && i < matching->known.heaps + matching->known.processes; i++)
		live_fini(&matching->annotated[i]);
	free(matching->annotated);
	free(matching->inherited);
	free(matching->next_heap);
	free(matching->is_annotation);
	if (matching->history)
		munmap(matching->history, (matching->most + 1) * sizeof(*matching->history));
	free(matching->ring);
	free(matching->ring_details);
	map_fini(&matching->site_ids);
	map_fini(&matching->seen);
	free(matching->last_user);
	free(matching->processes);
	free(matching->last_made);
	free(matching->last_taken);
	free(matching->site_notes);
	free(matching->copies);
	free(matching->strays);
	free(matching->doubts);
	free(matching->starts);
	free(matching->ends);
	free(matching->gaps);
	heap_table_free(matching->table);
	free(matching);
}

int matching_end(struct matching *matching, const struct trace *trace, struct heap_table **out, struct diag *diag)
{
	int error = matching_go_on(matching, trace, matching->how.until_ns ? *matching->how.until_ns : INT64_MAX, false, diag);
	if (error)
		return error;
	matching_finish(matching);
	*out = matching->table;
	matching->table = NULL;
	return 0;
}

int heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how, struct diag *diag)
{
	const struct heap_build nameless = {.fd = -1};
	struct matching *matching = matching_new(how ? how : &nameless);
	int error = matching_end(matching, trace, out, diag);
	matching_free(matching);
	return error;
}

void heap_table_free(struct heap_table *table)
{
	if (!table)
		return;
	groups_fini(&table->groups);
	free(table->is_damaged);
	free(table->sites);
	free(table->sums.numbers);
	free(table->sums.uses);
	free(table->processes);
	free(table->sum_sites);
	free(table->inside);
	free(table);
}
