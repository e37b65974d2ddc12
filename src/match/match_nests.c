/* SPDX-License-Identifier: MIT */
#include "match/match_nests.h"

#include <assert.h>

#include "base/memory.h"
#include "match/match_rows.h"
#include "match/matching.h"
#include "match/running_numbers.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

static bool row_is_live(void *context, uint32_t row)
{
	return matching_is_live(context, row);
}

static struct plain_note *plain_note_of(const struct matching_process *process, uint64_t address)
{
	return &process->plain_notes[(address >> PLAIN_NOTE_SHIFT) % PLAIN_NOTES];
}

/* Forget the noted blocks in which a block of an allocator begins: they have ended, and their ends come later. */
static void plain_notes_forget(const struct matching_process *process, uint64_t address)
{
	for (int i = 0; process->plain_notes && i < PLAIN_NOTES; i++) {
		struct plain_note *note = &process->plain_notes[i];
		if (address >= note->address && address < note->end)
			note->end = note->address;
	}
}

/* Return the live block that was noted around an address, or HEAP_NONE. */
static uint32_t plain_noted(const struct matching *matching, const struct matching_process *process, uint64_t address)
{
	const struct plain_note *note = process->plain_notes ? plain_note_of(process, address) : NULL;
	return note && address >= note->address && address < note->end && matching_is_live(matching, note->id)
		       ? note->id
		       : HEAP_NONE;
}

/* Return the live block of an allocator around an address, or HEAP_NONE. */
static uint32_t plain_enclosing(struct matching *matching, struct matching_process *process, uint64_t address)
{
	uint64_t start;
	uint32_t noted = plain_noted(matching, process, address);
	if (noted != HEAP_NONE)
		return noted;
	while (nest_starts_last(&process->nest.plain, address, &start)) {
		const struct live_cell *cell = live_find(&process->live, start);
		const struct heap_allocation *row = cell ? matching_live_row(matching, cell->current) : NULL;
		if (row && address - start >= row->size_bytes)
			return HEAP_NONE;
		if (row) {
			if (!process->plain_notes)
				process->plain_notes = memory_zeroed(PLAIN_NOTES, sizeof(*process->plain_notes));
			*plain_note_of(process, address) =
				(struct plain_note){start, start + row->size_bytes, cell->current};
			return cell->current;
		}
		nest_starts_remove(&process->nest.plain, start);
	}
	return HEAP_NONE;
}

/* Find the innermost span around the address; without one, the allocator's block around it. */
uint32_t matching_container(struct matching *matching, const struct point *point, struct nest_span **enclosing)
{
	struct matching_process *process = &matching->processes[point->process];
	*enclosing = nest_enclosing(&process->nest, point->address, row_is_live, matching);
	return *enclosing ? (*enclosing)->row : plain_enclosing(matching, process, point->address);
}

/* Nest the blocks that an allocator, which has its own pools, took for this one before its event came. */
static void nested_adopt(struct matching *matching, const struct point *point, uint32_t id)
{
	struct nest *nest = &matching->processes[point->process].nest;
	struct heap_allocation *row = matching_live_row(matching, id);
	uint64_t last = point->address + row->size_bytes - 1;
	for (struct nest_span *span; row->size_bytes && last >= point->address;) {
		span = nest_last_within(nest, point->address, last, row_is_live, matching);
		if (!span)
			break;
		struct heap_allocation *inner = matching_live_row(matching, span->row);
		row->flags |= HEAP_HAS_NESTED;
		if (!(inner->flags & HEAP_NESTED)) {
			struct heap_process *process = &matching->table->processes[point->process];
			inner->flags |= HEAP_NESTED;
			matching->table->nested_count++;
			numbers_forget(&matching->table->sums.numbers[inner->site], inner->size_bytes, inner->flags);
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

/* Note the container of the new allocation, and that later ones may lie in it. */
void matching_nest_note(struct matching *matching, const struct point *point, uint32_t id, uint32_t container,
			const struct nest_span *enclosing)
{
	assert(matching->is_annotation && id < matching->table->count);
	struct matching_process *process = &matching->processes[point->process];
	uint32_t heap = point->block->heap[point->row];
	if (point->live == &process->live) {
		plain_notes_forget(process, point->address);
		nest_starts_add(&process->nest.plain, point->address);
		nested_adopt(matching, point, id);
		return;
	}
	heap = heap < matching->table->dictionary->heap_count ? heap : TRACE_NONE;
	nest_add(&process->nest,
		 &(struct nest_span){
			 .address = point->address, .bytes = point->block->size[point->row], .row = id, .heap = heap},
		 enclosing);
	struct heap_allocation *outer = container == HEAP_NONE ? NULL : matching_live_row(matching, container);
	if (!outer)
		return;
	outer->flags |= HEAP_HAS_NESTED;
	if (heap != TRACE_NONE && matching->table->inside[heap] == TRACE_NONE && outer->heap != heap)
		matching->table->inside[heap] = outer->heap;
}

/* End everything that lay in the bytes of the block at the point's address, which is gone. */
void matching_nested_end(struct matching *matching, const struct point *point, uint64_t bytes)
{
	struct matching_process *process = &matching->processes[point->process];
	const struct row_end end = point_row_end(matching, point, HEAP_END_DESTROY);
	uint64_t last = point->address + (bytes ? bytes - 1 : 0);
	for (struct nest_span *span;
	     (span = nest_last_within(&process->nest, point->address, last, row_is_live, matching));) {
		struct live *live = span->heap == TRACE_NONE ? &process->heapless : &matching->annotated[span->heap];
		struct live_cell *cell = live_find(live, span->address);
		uint64_t address = span->address;
		matching_allocation_end(matching, span->row, &end);
		/* Its own end may come still. */
		if (cell && cell->current == span->row)
			cell->other = span->row;
		nest_at(&process->nest, address, row_is_live, matching);
	}
}
