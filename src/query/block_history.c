/* SPDX-License-Identifier: MIT */
#include "query/block_history.h"

#include <stdlib.h>

#include "base/memory.h"
#include "query/scan.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static bool contains(const struct history_block *block, uint64_t address)
{
	uint64_t usable = history_usable(block);
	return address >= block->details.address && address - block->details.address < (usable ? usable : 1);
}

/* ---- the moment ---- */

/* A beginning at a position is before it, too. */
static bool has_begun(const struct block_history *history, const struct heap_table *table,
		      const struct history_block *block)
{
	int64_t birth_ns = block->row.birth_ns, at_ns = history->at.time_ns;
	if (history->is_end || block->row.flags & HEAP_EARLIER || birth_ns < at_ns)
		return true;
	return birth_ns == at_ns && heap_table_step(table, block->details.birth_point) <= history->at.step;
}

/* An end at a position is behind it. */
static bool is_live(const struct block_history *history, const struct heap_table *table,
		    const struct history_block *block)
{
	if (!has_begun(history, table, block))
		return false;
	if (history->is_end || block->row.end == HEAP_END_OPEN)
		return !heap_end_is_given_back(block->row.end);
	int64_t end_ns = block->row.end_ns, at_ns = history->at.time_ns;
	return end_ns > at_ns ||
	       (end_ns == at_ns && heap_table_step(table, block->details.end_point) >= history->at.step);
}

/* ---- the pass ---- */

/* Keep the block if it is nearer to the address than the one before. */
static void beside_note(struct block_history *history, const struct history_block *block)
{
	uint64_t address = block->details.address;
	if (block->row.flags & HEAP_NESTED)
		return;
	if (address < history->address && (history->below.id == HEAP_NONE || address > history->below.details.address))
		history->below = *block;
	if (address > history->address && (history->above.id == HEAP_NONE || address < history->above.details.address))
		history->above = *block;
}

static void block_note(struct block_history *history, const struct heap_table *table, const struct history_block *block)
{
	bool is_inside = contains(block, history->address), lives = is_live(history, table, block);
	if (!is_inside && lives)
		beside_note(history, block);
	if (!is_inside)
		return;
	if (lives)
		history->live = *block;
	if (has_begun(history, table, block))
		history->before[history->before_count++ % HISTORY_BEFORE_MAX] = *block;
	else if (history->after_count++ < HISTORY_AFTER_MAX)
		history->after[history->after_count - 1] = *block;
}

static uint32_t process_of(const struct heap_table *table, const struct heap_allocation *row)
{
	return table->dictionary->threads[row->thread].process;
}

/* What the address of a block can tell about the questions needs few of its columns; the rest is unpacked by row. */
static void rows_note(struct block_history *histories, size_t count, const struct heap_table *table,
		      const struct heap_rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++) {
		struct history_block block = {rows->first + i, heap_rows_get(rows, i), rows->details[i]};
		uint32_t process = process_of(table, &block.row);
		for (size_t j = 0; j < count; j++)
			if (histories[j].process == process)
				block_note(&histories[j], table, &block);
	}
}

/* All allocations with all that is known of them: there are no copies then (query/scan.h). */
static const struct heap_scan_plan plan_all = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_EVERYTHING, NULL, NULL};

void block_history_find(struct block_history *histories, size_t count, const struct heap_table *table)
{
	const struct history_block none = {.id = HEAP_NONE};
	const struct heap_rows *rows;
	struct heap_scan scan;
	for (size_t i = 0; i < count; i++)
		histories[i].live = histories[i].below = histories[i].above = none;
	heap_scan_begin(&scan, table, &plan_all, NULL);
	while ((rows = heap_scan_next(&scan)))
		rows_note(histories, count, table, rows);
	heap_scan_end(&scan);
}

void block_history_inherit(struct block_history *history, const struct heap_table *table)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	uint32_t process = history->process;
	/* A parent may have inherited the block, too; more generations than processes there are not. */
	for (uint32_t i = 0; i < dictionary->process_count && !block_history_last(history); i++) {
		const struct trace_process *child = &dictionary->processes[process];
		if (child->forked_from >= dictionary->process_count)
			return;
		struct block_history parent = {.address = history->address,
					       .process = process = child->forked_from,
					       .at = {child->start_ns, POSITION_LAST},
					       .is_inherited = true};
		block_history_find(&parent, 1, table);
		if (parent.live.id != HEAP_NONE)
			*history = parent;
	}
}

void block_history_count(uint64_t *by_process, const struct heap_table *table, uint64_t address)
{
	const struct heap_rows *rows;
	struct heap_scan scan;
	heap_scan_begin(&scan, table, &plan_all, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct history_block block = {rows->first + i, heap_rows_get(rows, i), rows->details[i]};
			by_process[process_of(table, &block.row)] += contains(&block, address);
		}
	heap_scan_end(&scan);
}

/* ---- what was found ---- */

unsigned block_history_kept(const struct block_history *history)
{
	return history->before_count < HISTORY_BEFORE_MAX ? (unsigned)history->before_count : HISTORY_BEFORE_MAX;
}

const struct history_block *block_history_before(const struct block_history *history, unsigned i)
{
	uint64_t first = history->before_count - block_history_kept(history);
	return &history->before[(first + i) % HISTORY_BEFORE_MAX];
}

const struct history_block *block_history_last(const struct block_history *history)
{
	if (history->live.id != HEAP_NONE)
		return &history->live;
	unsigned kept = block_history_kept(history);
	const struct history_block *last = NULL;
	/* The block that ended last: an older one may have outlived a younger one that lay in it. */
	for (unsigned i = 0; i < kept; i++) {
		const struct history_block *block = block_history_before(history, i);
		last = !last || block->row.end_ns >= last->row.end_ns ? block : last;
	}
	return last;
}

bool block_history_is_given_back(const struct block_history *history)
{
	const struct history_block *last = block_history_last(history);
	return last && history->live.id == HEAP_NONE && last->details.address == history->address &&
	       heap_end_is_given_back(last->row.end);
}

unsigned block_history_double_frees(const struct heap_table *table)
{
	unsigned count = table->fault_count < HISTORY_FAULTS_MAX ? table->fault_count : HISTORY_FAULTS_MAX, found = 0;
	if (!count)
		return 0;
	struct block_history *histories = memory_zeroed(count, sizeof(*histories));
	for (unsigned i = 0; i < count; i++) {
		const struct heap_fault *fault = &table->faults[i];
		histories[i] = (struct block_history){.address = fault->address,
						      .process = table->dictionary->threads[fault->thread].process,
						      .at = {fault->time_ns, heap_table_step(table, fault->point)}};
	}
	block_history_find(histories, count, table);
	for (unsigned i = 0; i < count; i++)
		found += block_history_is_given_back(&histories[i]);
	free(histories);
	return found;
}

/* ---- reallocs ---- */

/* Return the allocation of this number. */
struct history_block block_history_read(const struct heap_table *table, uint32_t id)
{
	struct history_block block = {.id = HEAP_NONE};
	const struct heap_rows *rows;
	struct heap_scan scan;
	heap_scan_begin(&scan, table, &plan_all, NULL);
	heap_scan_range(&scan, id / PACK_ROWS, id / PACK_ROWS + 1);
	if ((rows = heap_scan_next(&scan)) && id - rows->first < rows->count)
		block = (struct history_block){id, heap_rows_get(rows, id - rows->first),
					       rows->details[id - rows->first]};
	heap_scan_end(&scan);
	return block;
}

/* The numbers descend, whatever an index says. */
static void earlier_find(struct history_chain *chain, const struct heap_table *table, const struct history_block *block)
{
	struct history_block found[HISTORY_STEPS_MAX];
	struct history_block at = *block;
	while (at.details.previous < at.id) {
		at = block_history_read(table, at.details.previous);
		if (at.id == HEAP_NONE)
			break;
		if (chain->count++ < HISTORY_STEPS_MAX)
			found[chain->step_count++] = at;
	}
	for (unsigned i = 0; i < chain->step_count; i++)
		chain->steps[i] = found[chain->step_count - 1 - i];
}

/* A block is made of one with a lower number, so one pass finds all of them. */
static void later_find(struct history_chain *chain, const struct heap_table *table, const struct history_block *block)
{
	const struct heap_rows *rows;
	struct heap_scan scan;
	uint32_t at = block->id, end = block->row.end;
	heap_scan_begin(&scan, table, &plan_all, NULL);
	heap_scan_range(&scan, at / PACK_ROWS, heap_scan_places(&scan));
	while (end == HEAP_END_REALLOC && (rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			if (rows->details[i].previous != at)
				continue;
			struct history_block next = {rows->first + i, heap_rows_get(rows, i), rows->details[i]};
			at = next.id;
			end = next.row.end;
			if (chain->count++ < HISTORY_STEPS_MAX)
				chain->steps[chain->step_count++] = next;
		}
	heap_scan_end(&scan);
}

void block_history_chains(struct history_chain *earlier, struct history_chain *later, const struct heap_table *table,
			  const struct history_block *block)
{
	*earlier = *later = (struct history_chain){.count = 0};
	earlier_find(earlier, table, block);
	later_find(later, table, block);
}
