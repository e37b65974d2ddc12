/* SPDX-License-Identifier: MIT */
/*
 * The effects of points, one after the other, or of a whole run at once.
 *
 * An address of a process has a cell (table/live.h), unless no block of it is known. States and actions:
 *
 *     none   no cell                     two    current and other live; other is the older one
 *     one    current is live             gone   current ended with its container (other == current); its End may come
 *     dead   current has ended: after a Destroy, in a process that takes part in a fork, or a copy of a parent's block
 *
 *     state   Begin B                   End                               Destroy of the heap    end of the process
 *     none    B -> one; a waiting       a copy of a parent's block        -                      -
 *             End ends B -> none        -> dead; otherwise it waits
 *     one     B, older -> two           current ends -> none, dead        current ends -> dead   current exits
 *     two     conflict of other;        within the slack, by a thread     conflict of other;     conflict of other;
 *             B, older -> two           that did not begin current:       current ends -> dead   current exits
 *                                       other ends -> one; otherwise
 *                                       conflict, current ends -> none
 *     gone    B -> one                  that one -> dead                  -                      -
 *     dead    B -> one                  it waits                          -                      -
 *
 * A conflict is an end without an event (match/match_late_frees.c). The end of a container makes its blocks gone. A
 * fork changes no cell: the child's table is empty, and its parent's is searched (match/match_forks.c). What is live
 * when a process ends behind the trace's end stays open.
 *
 * The life of a run:
 *
 *     event block --decode--> points, in order of time --> lane of its thread --merge--> run: points before all others'
 *                                                                                             |
 *     isolated block: a block match, made when it is decoded    long run: made now    short run: none
 *                 |                                                  |                        |
 *                 +------------------------+-------------------------+                        |
 *                                          v                                                  |
 *     plain?  Begins and Ends alternate at each address; no Destroy, no earlier blocks;       |
 *             all that it ends is live, with no other; no block is live where it begins one;  |
 *             no process begins or ends in its time, and no End waits                         |
 *                 | yes                                            no |                       |
 *                 v                                                   +-----------+-----------+
 *     rows, packed by a helper; cells only of what begins                         v
 *     and stays live, and of what ends                              point by point, by the table above
 *                 |                                                 rows by the ring
 *                 +---------------------------+-----------------------------------+
 *                                             v
 *                            groups of the table; live rows are survivors, too
 */

#include "match/match_points.h"

#include "base/events.h"
#include "base/memory.h"
#include "match/born.h"
#include "match/match_forks.h"
#include "match/match_late_frees.h"
#include "match/match_nests.h"
#include "match/match_rows.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	AHEAD = 16,     /* points whose blocks' cells are fetched early */
	LARGE_BITS = 15 /* a table with this many bits of cells does not fit into the processor's cache */
};

/* ---- points ---- */

/* Return the thread's last allocation. Events of annotated heaps and of allocators are kept apart: one kind does not
   come between two of the other. */
static uint32_t *last_alloc(struct matching *matching, const struct point *point)
{
	bool is_annotated = point->live != &matching->processes[point->process].live;
	return &matching->last_alloc[point->thread][is_annotated];
}

/* Return whether the event only accompanies calls of a pool that threads share. */
static bool is_aside(uint8_t kind)
{
	return kind == EVENT_LOCK || kind == EVENT_UNLOCK || kind == EVENT_PROTECT;
}

/* Return whether an earlier block was found at an address that has had events since the attach. An end that was over
   before the reading began does not count. */
static bool is_settled(const struct matching *matching, const struct point *point)
{
	const struct matching_process *process = &matching->processes[point->process];
	const struct live_cell *cell = live_find(&process->live, point->address);
	const uint32_t *measured = map_find(&process->measured, point->address);
	return (measured && process->measured_ns[*measured] >= process->reading_ns) ||
	       (cell && matching_is_live(matching, cell->current));
}

static void reading_note(struct matching *matching, const struct point *point)
{
	if (!(point->block->flags[point->row] & EVENT_NO_DURATION))
		matching->processes[point->process].reading_ns =
			(int64_t)((uint64_t)point->time_ns - (uint64_t)point->block->duration_ns[point->row]);
}

static uint32_t allocation_add(struct matching *matching, const struct point *point, bool is_nested)
{
	struct heap_allocation row;
	struct heap_details details;
	born_allocation(&row, point->block,
			&(struct point_place){point->time_ns, point->address, point->row, HEAP_POINT_BEGIN});
	row.flags |= is_nested ? HEAP_NESTED : 0;
	row.site = matching_site_of(matching, point->block, point->row);
	born_details(&details, point->block, point->row, point->ordinal);
	details.previous = row.flags & HEAP_REALLOC ? matching->last_realloc_from[point->thread] : HEAP_NONE;
	matching->last_realloc_from[point->thread] = HEAP_NONE;
	/* A resize in place leaves the block in its heap, whichever heap the call names. */
	bool stays = matching->has_objects && !(row.flags & HEAP_MOVED) && details.previous != HEAP_NONE, added;
	if (stays)
		row.heap = matching->last_realloc_heap[point->thread];
	uint32_t id = matching_row_add(matching, &row, &details);
	if (stays && map_find(&matching->moved, details.previous))
		*map_add(&matching->moved, id, &added) = 1;
	return id;
}

/* From "two" to "one": the older block ends by a conflict. */
static void cell_settle(struct matching *matching, struct live_cell *cell)
{
	if (cell->other != HEAP_NONE)
		matching_settle_conflict(matching, cell->other, cell->current);
	cell->other = HEAP_NONE;
}

static void point_begin(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	if (point->block->kind[point->row] == EVENT_EARLIER) {
		reading_note(matching, point);
		if (is_settled(matching, point))
			return;
	}
	struct nest_span *enclosing = NULL;
	uint32_t container = matching->is_annotation && point->live != &process->live
				     ? matching_container(matching, point, &enclosing)
				     : HEAP_NONE;
	/* In a sample what it lies in may be missing. */
	bool is_nested = container != HEAP_NONE || (matching->table->sample_bytes && point->live != &process->live);
	uint32_t id = allocation_add(matching, point, is_nested);
	if (matching->is_annotation)
		matching_nest_note(matching, point, id, container, enclosing);
	struct live_cell *cell = live_add(point->live, point->address);
	cell_settle(matching, cell);
	struct heap_allocation *older = cell->current != HEAP_NONE ? matching_live_row(matching, cell->current) : NULL;
	cell->other = older ? cell->current : HEAP_NONE;
	if (older)
		*matching_end_point(matching, cell->current, older) = point->ordinal;
	const struct heap_allocation *row = &matching->ring[id % RING_ROWS];
	if (process->keeps_history)
		matching->history[id] = (struct history){.before = cell->current,
							 .is_nested = is_nested,
							 .size_bytes = row->size_bytes,
							 .birth_ns = row->birth_ns};
	cell->current = id;
	*last_alloc(matching, point) = point->block->flags[point->row] & EVENT_FOLDED_AFTER ? HEAP_NONE : id;
	struct pending_free pending;
	if (cell->other == HEAP_NONE && matching->pending_first < matching->pending_count &&
	    matching_pending_take(matching, point, &pending)) {
		row_end_move(&pending.end, point->time_ns);
		matching_allocation_end(matching, id, &pending.end);
		if (!process->keeps_history)
			live_remove(point->live, cell);
	}
}

/* Return the block of the cell that this end belongs to: the older one if there are two and that is possible. */
static uint32_t point_choose(struct matching *matching, struct live_cell *cell, const struct point *point,
			     bool *is_older)
{
	uint32_t older = cell->other;
	*is_older = false;
	if (older == HEAP_NONE)
		return cell->current;
	const struct heap_allocation *newer = matching_live_row(matching, cell->current);
	if (newer->thread != point->thread && (uint64_t)point->time_ns - (uint64_t)newer->birth_ns <= STAMP_SLACK_NS) {
		cell->other = HEAP_NONE;
		*is_older = true;
		return older;
	}
	cell_settle(matching, cell);
	return cell->current;
}

/* Return whether a block ended with its container: an allocator reports its pools after its own free has begun. */
static bool has_ended_before(const struct live_cell *cell)
{
	return cell && cell->other != HEAP_NONE && cell->other == cell->current;
}

/* Return whether an end is that of an inherited block of a folded trace, which keeps no such blocks. It is the first
   event of its address in the child, and has nothing to do with a block that begins there soon after. */
static bool is_of_folded_parent(const struct matching *matching, const struct point *point,
				const struct live_cell *cell)
{
	return !cell && matching->is_folded && matching->processes[point->process].forked_from != TRACE_NONE;
}

static void point_end(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	struct live_cell *cell = live_find(point->live, point->address);
	enum heap_end end = born_end(point->block, point->row);
	uint32_t made = *last_alloc(matching, point);
	struct heap_allocation *row = cell ? matching_live_row(matching, cell->current) : NULL;
	bool is_measured = born_is_measured(point->block, point->row);
	struct measure measure = is_measured ? matching_measure(matching, point) : (struct measure){0, INT64_MIN};
	*last_alloc(matching, point) = HEAP_NONE;
	if (!row && has_ended_before(cell)) {
		cell->other = HEAP_NONE;
		return;
	}
	if (!row) {
		/* In a sample, the block that a realloc took may be missing. */
		bool may_be_missing = end == HEAP_END_REALLOC && matching->table->sample_bytes;
		if (matching_copy_end(matching, point) || may_be_missing)
			return;
		if (is_of_folded_parent(matching, point, cell))
			matching_unknown_free(
				matching, point->process,
				&(struct heap_fault){point->time_ns, point->address, point->ordinal, point->thread});
		else
			matching_pending_add(matching, point, end, measure);
		return;
	}
	bool is_older;
	uint32_t id = point_choose(matching, cell, point, &is_older);
	int64_t time_ns = is_older ? row->birth_ns : point->time_ns;
	bool has_nested = row->flags & HEAP_HAS_NESTED && !is_older;
	uint64_t size_bytes = row->size_bytes;
	if (is_older)
		row = matching_live_row(matching, id);
	/* The thread's very next event is hardly ever in a sample. */
	if (row && id == made && end == HEAP_END_FREE && !matching->table->sample_bytes)
		row->flags |= HEAP_TEMPORARY;
	if (end == HEAP_END_REALLOC)
		matching->last_realloc_from[point->thread] = id;
	if (end == HEAP_END_REALLOC && row)
		matching->last_realloc_heap[point->thread] = row->heap;
	if (row) {
		struct row_end row_end = point_row_end(matching, point, end);
		row_end_move(&row_end, time_ns);
		matching_live_row_end(matching, id, row, &row_end);
	}
	if (!is_older && !process->keeps_history)
		live_remove(point->live, cell);
	/* A block that grows in place keeps the blocks inside it. */
	if (has_nested && (end == HEAP_END_FREE || point->block->address[point->row] != point->address))
		matching_nested_end(matching, point, size_bytes);
}

/* Return the heap function of a point. */
static uint32_t point_function(const struct matching *matching, const struct point *point)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	uint32_t entry = point->block->entry[point->row];
	return entry < dictionary->entry_count ? dictionary->entries[entry].function : FUNCTION_COUNT;
}

/* Note the first heap object. Blocks that were made before it are in heaps that they do not leave. */
static void point_create(struct matching *matching, const struct point *point)
{
	uint32_t function = point_function(matching, point);
	matching->has_objects |= function == FUNCTION_OBJECT_NEW || function == FUNCTION_OBJECT_NEW_IN;
}

/* Return whether a block lies in the heap. A forked child has the heap under a row of its own. The blocks of a deleted
   heap lie in it no longer; another one may have its handle. */
static bool is_in_heap(const struct matching *matching, const struct heap_allocation *row, uint32_t id, uint32_t heap)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	bool is_same = row->heap == heap;
	if (!is_same && matching->has_objects && row->heap < dictionary->heap_count && heap < dictionary->heap_count)
		is_same = dictionary->heaps[row->heap].handle == dictionary->heaps[heap].handle &&
			  strcmp(dictionary->heaps[row->heap].name, dictionary->heaps[heap].name) == 0;
	return is_same && !map_find(&matching->moved, id);
}

/* Note that the blocks of a deleted heap go on in the default heap. */
static void point_delete(struct matching *matching, const struct point *point)
{
	const struct live *live = point->live;
	uint32_t heap = point->block->heap[point->row];
	bool added;
	for (size_t i = 0; live->cells && i < (size_t)1 << live->bits; i++) {
		const struct live_cell *cell = &live->cells[i];
		const struct heap_allocation *row = cell->address ? matching_live_row(matching, cell->current) : NULL;
		if (row && is_in_heap(matching, row, cell->current, heap))
			*map_add(&matching->moved, cell->current, &added) = 1;
	}
}

/* End everything in a heap. For heaps that are not annotated, that is rare enough to check every block. */
static void point_destroy(struct matching *matching, const struct point *point)
{
	struct live *live = point->live;
	uint32_t heap = point->block->heap[point->row];
	const struct row_end end = point_row_end(matching, point, HEAP_END_DESTROY);
	if (heap == TRACE_NONE || point->block->flags[point->row] & EVENT_FAILED)
		return;
	if (point_function(matching, point) == FUNCTION_OBJECT_DELETE) {
		point_delete(matching, point);
		return;
	}
	for (size_t i = 0; live->cells && i < (size_t)1 << live->bits; i++) {
		struct live_cell *cell = &live->cells[i];
		const struct heap_allocation *row = cell->address ? matching_live_row(matching, cell->current) : NULL;
		if (!row || !is_in_heap(matching, row, cell->current, heap))
			continue;
		cell_settle(matching, cell);
		struct point block = *point;
		uint64_t size_bytes = row->size_bytes;
		bool has_nested = row->flags & HEAP_HAS_NESTED;
		block.address = cell->address;
		matching_allocation_end(matching, cell->current, &end);
		if (has_nested)
			matching_nested_end(matching, &block, size_bytes);
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
		cell_settle(matching, cell);
		if (!is_open)
			matching_eventless_end(matching, cell->current, HEAP_END_EXIT, end_ns);
	}
}

void matching_process_end(struct matching *matching, uint32_t id, bool is_open)
{
	struct matching_process *process = &matching->processes[id];
	int64_t end_ns = matching->table->processes[id].end_ns;
	live_end(matching, &process->live, end_ns, is_open);
	for (uint32_t heap = process->first_heap; matching->annotated && heap != TRACE_NONE;
	     heap = matching->next_heap[heap])
		live_end(matching, &matching->annotated[heap], end_ns, is_open);
	live_end(matching, &process->heapless, end_ns, is_open);
	nest_fini(&process->nest);
	free(process->plain_notes);
	process->plain_notes = NULL;
	if (!process->keeps_history)
		live_fini(&process->live);
}

/* Handle the forks and ends of processes before a point of this time. */
void matching_advance(struct matching *matching, int64_t time_ns)
{
	for (;;) {
		const struct lifecycle_event *start = &matching->starts[matching->next_start],
					     *end = &matching->ends[matching->next_end];
		bool has_start = matching->next_start < matching->start_count && start->time_ns <= time_ns;
		bool has_end = matching->next_end < matching->end_count && end->time_ns < time_ns;
		if (has_start && (!has_end || start->time_ns <= end->time_ns)) {
			matching_fork(matching, start->process);
			matching->processes[start->process].has_started = true;
			matching->next_start++;
		} else if (has_end) {
			matching_process_end(matching, end->process, false);
			matching->processes[end->process].has_ended = true;
			matching->next_end++;
		} else {
			break;
		}
	}
	const struct lifecycle_event *start = &matching->starts[matching->next_start],
				     *end = &matching->ends[matching->next_end];
	int64_t start_ns = matching->next_start < matching->start_count ? start->time_ns : INT64_MAX;
	int64_t end_ns = matching->next_end < matching->end_count ? end->time_ns : INT64_MAX;
	matching->next_lifecycle_ns = start_ns < end_ns ? start_ns : end_ns;
}

/* Return the table for blocks of the point's function. Earlier blocks have none: they are allocators' own. */
static struct live *live_of(const struct matching *matching, const struct point *point)
{
	uint32_t heap = point->block->heap[point->row], entry = point->block->entry[point->row];
	if (!matching->is_annotation || point->block->kind[point->row] == EVENT_EARLIER ||
	    entry >= matching->table->dictionary->entry_count || !matching->is_annotation[entry])
		return &matching->processes[point->process].live;
	return heap < matching->annotated_count ? &matching->annotated[heap]
						: &matching->processes[point->process].heapless;
}

static void matching_point(struct matching *matching, const struct trace_block *block, const struct point_place *at,
			   uint32_t ordinal)
{
	struct point point = {
		at->time_ns,   0,     NULL,    matching->table->dictionary->threads[block->thread].process,
		block->thread, block, at->row, ordinal};
	if (at->time_ns >= matching->next_lifecycle_ns)
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
			*last_alloc(matching, &point) = HEAP_NONE;
		if (block->kind[at->row] == EVENT_DESTROY)
			point_destroy(matching, &point);
		else if (block->kind[at->row] == EVENT_CREATE)
			point_create(matching, &point);
		break;
	}
}

/* ---- runs with a block match ---- */

/* Prefetch: the ended blocks were allocated long ago and lie anywhere in memory. */
static void plain_expect(const struct matching *matching, const struct block_match *match, uint32_t i)
{
	const struct block_match_end *ends = &match->ends[i];
	if (i + 2 * AHEAD < match->end_count && ends[2 * AHEAD].id < matching->written)
		survivors_expect(matching->survivors, ends[2 * AHEAD].id);
	if (i + AHEAD < match->end_count && ends[AHEAD].id < matching->written)
		survivors_expect_more(matching->survivors, ends[AHEAD].id);
}

/* Find the allocations that the event block ends. Return false if one is not live, or shares its address. */
static bool plain_find_ends(struct matching *matching, const struct live *live, struct block_match *match)
{
	struct block_match_end *ends = match->ends;
	for (uint32_t i = 0; i < match->end_count; i++) {
		if (i + AHEAD < match->end_count)
			live_expect(live, ends[i + AHEAD].address);
		const struct live_cell *cell = live_find(live, ends[i].address);
		if (!cell || cell->other != HEAP_NONE)
			return false;
		ends[i].id = cell->current;
	}
	for (uint32_t i = 0; i < match->end_count; i++) {
		plain_expect(matching, match, i);
		if (!matching_is_live(matching, ends[i].id))
			return false;
	}
	return true;
}

static bool plain_is_fresh(const struct live *live, const struct block_match *match)
{
	for (uint32_t i = 0; i < match->fresh_count; i++) {
		if (i + AHEAD < match->fresh_count)
			live_expect(live, match->fresh[i + AHEAD]);
		if (live_find(live, match->fresh[i]))
			return false;
	}
	return true;
}

/* Return whether the run may be plain, judged before its points. */
static bool run_may_be_plain(struct matching *matching, const struct heap_run *run)
{
	const struct matching_process *process =
		&matching->processes[matching->table->dictionary->threads[run->block->thread].process];
	int64_t first_ns = run->places[0].time_ns, last_ns = run->places[run->count - 1].time_ns;
	if (matching->is_by_points || process->keeps_history || matching->is_annotation || matching->has_objects ||
	    last_ns > matching->until_ns)
		return false;
	if (first_ns >= matching->next_lifecycle_ns)
		matching_advance(matching, first_ns);
	return !matching->pending_count && last_ns < matching->next_lifecycle_ns;
}

/* Return whether the run is plain. If so, the allocations that it ends are found. */
static bool run_is_plain(struct matching *matching, const struct heap_run *run)
{
	const struct live *live =
		&matching->processes[matching->table->dictionary->threads[run->block->thread].process].live;
	return run->match->is_plain && plain_find_ends(matching, live, run->match) && plain_is_fresh(live, run->match);
}

static void plain_end(struct matching *matching, struct block_match *match, uint32_t thread)
{
	struct live *live = &matching->processes[matching->table->dictionary->threads[thread].process].live;
	for (uint32_t i = 0; i < match->end_count; i++) {
		const struct block_match_end *end = &match->ends[i];
		if (i + AHEAD < match->end_count)
			live_expect(live, end[AHEAD].address);
		plain_expect(matching, match, i);
		struct heap_allocation *row = matching_live_row(matching, end->id);
		if (!end->place && end->end == HEAP_END_FREE && end->id == matching->last_alloc[thread][0])
			row->flags |= HEAP_TEMPORARY;
		if (end->end == HEAP_END_REALLOC)
			matching->last_realloc_heap[thread] = row->heap;
		match->changes[end->place] = 0 - (uint64_t)row->size_bytes;
		match->sum_bytes -= row->size_bytes;
		matching_row_end(matching, end->id, row,
				 &(struct row_end){end->time_ns, match->site_ids[end->site], thread,
						   match->first_point + end->place, end->end});
		live_remove(live, live_find(live, end->address));
	}
}

static uint32_t taken_id(const struct block_match *match, uint32_t from, uint32_t first)
{
	return from < BLOCK_MATCH_END ? first + from : match->ends[from - BLOCK_MATCH_END].id;
}

/* Set the blocks that reallocs took. Other threads' points may lie between the two of one realloc. */
static void plain_take(struct matching *matching, const struct block_match *match, uint32_t first, uint32_t thread)
{
	uint32_t *last_realloc_from = &matching->last_realloc_from[thread];
	/* Of a block from before the run, plain_end() has noted the heap. */
	if (match->last_realloc_from < BLOCK_MATCH_END)
		matching->last_realloc_heap[thread] = match->rows[match->last_realloc_from].heap;
	if (match->takes_before)
		match->details[0].previous = *last_realloc_from;
	for (uint32_t i = 0; i < match->taken_count; i++)
		match->details[match->taken[i].row].previous = taken_id(match, match->taken[i].from, first);
	if (match->last_realloc_from != HEAP_NONE)
		*last_realloc_from = taken_id(match, match->last_realloc_from, first);
	else if (match->count)
		*last_realloc_from = HEAP_NONE;
}

/* Add the blocks that begin in the run and live on. */
static void plain_begin(struct matching *matching, const struct block_match *match, uint32_t first, uint32_t thread)
{
	uint32_t process = matching->table->dictionary->threads[thread].process;
	struct live *live = &matching->processes[process].live;
	for (uint32_t i = 0; i < match->open_count; i++) {
		uint32_t row = match->open[i];
		if (i + AHEAD < match->open_count)
			live_expect(live, match->details[match->open[i + AHEAD]].address);
		struct heap_allocation allocation = match->rows[row];
		allocation.site = match->site_ids[allocation.site];
		live_add(live, match->details[row].address)->current = first + row;
		survivors_add(matching->survivors, first + row, &allocation, HEAP_NONE);
	}
	matching->table->processes[process].live_count += match->open_count;
	matching->table->processes[process].live_bytes += match->open_bytes;
}

/* Change the level by the run. The changes are added one by one only if the peak, or the chart, may be exceeded. */
static void plain_level(struct level *level, const struct block_match *match, const struct heap_run *run)
{
	int64_t first_ns = run->places[0].time_ns, last_ns = run->places[run->count - 1].time_ns;
	uint64_t most_bytes = level->live_bytes + match->most_bytes;
	if (most_bytes > level->peak.bytes ||
	    (level->chart && !live_chart_has(level->chart, first_ns, last_ns, most_bytes))) {
		for (uint32_t i = 0; i < run->count; i++)
			level_change(level, run->places[i].time_ns, match->changes[i]);
		return;
	}
	level_change(level, first_ns, match->sum_bytes);
	level->time_ns = last_ns;
}

static void block_match_sum_add(struct heap_numbers *numbers, const struct block_match_sum *sum)
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
	struct block_match *match = run->match;
	uint32_t thread = run->block->thread;
	int64_t last_ns = run->places[run->count - 1].time_ns;
	while (matching->written < table->count)
		matching_ring_write(matching);
	match->first_point = (uint32_t)matching->done;
	uint32_t first = table->count;
	for (uint32_t i = 0; i < match->site_count; i++) {
		uint32_t site = match->site_ids[i] = matching_site(matching, match->sites[i]);
		block_match_sum_add(&table->sums.numbers[site], &match->sums[i]);
		if (match->sums[i].count)
			matching_site_use(matching, site, thread);
	}
	plain_end(matching, match, thread);
	plain_take(matching, match, first, thread);
	plain_begin(matching, match, first, thread);
	plain_level(&matching->level, match, run);
	matching->last_alloc[thread][0] = match->last_alloc == HEAP_NONE ? HEAP_NONE : first + match->last_alloc;
	table->duration_ns = last_ns > table->duration_ns ? last_ns : table->duration_ns;
	table->count += match->count;
	matching->written = table->count;
	survivors_complete(matching->survivors, matching->written);
	for (uint32_t i = 0; matching->how.watch && i < match->count; i++) {
		struct heap_allocation row = match->rows[i];
		row.site = match->site_ids[row.site];
		matching_watch_add(matching, &row);
	}
	packing_add_match(matching->packing, match);
}

/* Return the survivor that a point ends, if its cell exists; otherwise -1. */
static int64_t survivor_at(const struct matching *matching, const struct live *live, const struct point_place *at)
{
	const struct live_cell *cell = at->kind == HEAP_POINT_END ? live_find(live, at->address) : NULL;
	return cell && cell->current < matching->written ? (int64_t)cell->current : -1;
}

/* Prefetch early: each access to a block that was allocated long ago waits for memory. */
static void points_expect(const struct matching *matching, const struct live *live, const struct point_place *places,
			  uint32_t known)
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

/* Match the run as a whole and return true, if it is plain. A short run gets no block match of its own. */
static bool run_match_whole(struct matching *matching, struct heap_run *run)
{
	if ((!run->match && run->count < BLOCK_MATCH_MIN) || !run_may_be_plain(matching, run))
		return false;
	if (run->match) {
		heap_stream_keep(matching->stream);
	} else {
		run->match = heap_stream_take(matching->stream);
		block_match_make(run->match, run->block, run->places, run->count);
	}
	bool is_plain = run_is_plain(matching, run);
	if (is_plain)
		matching_plain(matching, run);
	else
		heap_stream_give_back(matching->stream, run->match);
	return is_plain;
}

/* Match the run's points one by one. Return how many were matched. */
static uint32_t run_by_points(struct matching *matching, const struct heap_run *run)
{
	const struct live *live =
		&matching->processes[matching->table->dictionary->threads[run->block->thread].process].live;
	uint32_t i = 0;
	for (; i < run->count && run->places[i].time_ns <= matching->until_ns; i++) {
		points_expect(matching, live, &run->places[i], run->known - i);
		matching_point(matching, run->block, &run->places[i], (uint32_t)matching->done + i);
	}
	return i;
}

bool matching_waits(const struct matching *matching, const struct heap_run *run)
{
	return !matching->is_by_points && run->count >= BLOCK_MATCH_MIN &&
	       run->places[run->count - 1].time_ns > matching->until_ns;
}

/* Note that a point has the time of the one before it. */
static void instant_add(struct matching *matching, uint32_t ordinal)
{
	struct heap_table *table = matching->table;
	struct heap_instant *last = table->instant_count ? &table->instants[table->instant_count - 1] : NULL;
	if (last && last->first_point + last->point_count == ordinal) {
		last->point_count++;
		return;
	}
	memory_grow(table->instants, table->instant_count, matching->instant_capacity);
	table->instants[table->instant_count++] = (struct heap_instant){ordinal - 1, 2};
}

/* Note the instants that have several points. */
static void instants_note(struct matching *matching, const struct heap_run *run, uint32_t count)
{
	const struct point_place *places = run->places;
	uint32_t first = (uint32_t)matching->done;
	if (first && places[0].time_ns == matching->instant_ns)
		instant_add(matching, first);
	for (uint32_t i = 1; run->is_crowded && i < count; i++)
		if (places[i].time_ns == places[i - 1].time_ns)
			instant_add(matching, first + i);
	matching->instant_ns = places[count - 1].time_ns;
}

/* Note the times of the points that are asked for. */
static void times_note(struct matching *matching, const struct heap_run *run, uint32_t count)
{
	uint32_t first = (uint32_t)matching->done, known = heap_time_count(first);
	for (uint32_t i = known * HEAP_POINTS_PER_TIME - first; i < count; i += HEAP_POINTS_PER_TIME) {
		memory_grow(matching->table->point_times, known, matching->time_capacity);
		matching->table->point_times[known++] = run->places[i].time_ns;
	}
}

uint32_t matching_run(struct matching *matching, struct heap_run run)
{
	struct heap_passed *passed = &matching->passed;
	uint32_t thread = run.block->thread,
		 done = run_match_whole(matching, &run) ? run.count : run_by_points(matching, &run);
	if (!done)
		return 0;
	instants_note(matching, &run, done);
	times_note(matching, &run, done);
	passed->positions[thread] =
		(struct heap_position){run.at.block + (done == run.known), done == run.known ? 0 : run.at.place + done};
	/* A thread may have gone back in time. */
	if (run.places[done - 1].time_ns >= passed->time_ns) {
		passed->time_ns = run.places[done - 1].time_ns;
		passed->thread = thread;
	}
	return done;
}
