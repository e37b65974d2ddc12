/* SPDX-License-Identifier: MIT */
#include "cells/growing_cells.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cells/cell_row.h"
#include "table/weight.h"
#include "trace/trace.h"

/* ---- keys ---- */

static uint64_t interval_of(const struct growing_cells *cells, int64_t time_ns)
{
	return time_ns > 0 ? (uint64_t)time_ns >> cells->shift : 0;
}

/* The moment from which on a point of this time has its effect. */
static uint32_t moment_of(const struct growing_cells *cells, int64_t time_ns)
{
	return (uint32_t)interval_of(cells, time_ns) + 1;
}

static struct cell_keys keys_of(const struct growing_cells *cells, const struct heap_table *table,
				const struct heap_allocation *row)
{
	uint32_t birth = row->flags & HEAP_EARLIER ? 0 : moment_of(cells, row->birth_ns),
		 end = row->end == HEAP_END_OPEN ? GROWING_NEVER : moment_of(cells, row->end_ns);
	return cell_row_keys(table, row, row->site, birth, end);
}

static struct cell_sums sums_of(const struct heap_table *table, const struct heap_allocation *row)
{
	const struct heap_weight weight = heap_weigh(table, row);
	return (struct cell_sums){.blocks = weight.count,
				  .bytes = weight.bytes,
				  .reallocs = row->flags & HEAP_REALLOC ? weight.count : 0,
				  .temporaries = row->flags & HEAP_TEMPORARY ? 1 : 0};
}

/* Return false if there are too many cells. */
static bool set_add(struct cell_set *set, const struct cell_keys *keys, const struct cell_sums *sums, uint32_t most)
{
	const struct cell like = cell_with(keys);
	return cell_set_add(set, &like, sums, most);
}

/* ---- intervals ---- */

static uint32_t moment_halve(uint32_t moment)
{
	return moment == GROWING_NEVER || !moment ? moment : (moment - 1) / 2 + 1;
}

/* Merge intervals in pairs. Cells that no block has any more are left out. */
static void intervals_merge(struct growing_cells *cells)
{
	struct cell_set merged = {.cells = NULL};
	for (uint32_t i = 0; i < cells->set.count; i++) {
		const struct cell *cell = &cells->set.cells[i];
		struct cell_keys keys = cell_keys_of(cell);
		keys.birth = moment_halve(keys.birth);
		keys.end = moment_halve(keys.end);
		if (cell->sums.blocks)
			set_add(&merged, &keys, &cell->sums, cells->most);
	}
	cell_set_fini(&cells->set);
	cells->set = merged;
	for (uint32_t i = 0; i < GROWING_INTERVALS; i++)
		cells->calls[i] = i < GROWING_INTERVALS / 2 ? cells->calls[2 * i] + cells->calls[2 * i + 1] : 0;
	cells->shift++;
}

uint32_t growing_cells_reach(struct growing_cells *cells, int64_t until_ns)
{
	while (interval_of(cells, until_ns) >= GROWING_INTERVALS)
		intervals_merge(cells);
	return (uint32_t)interval_of(cells, until_ns) + 1;
}

/* ---- blocks ---- */

static void cell_change(struct growing_cells *cells, const struct heap_table *table, const struct heap_allocation *row,
			const struct cell_sums *sums)
{
	const struct cell_keys keys = keys_of(cells, table, row);
	cells->is_over |= !set_add(&cells->set, &keys, sums, cells->most);
}

static void call_count(struct growing_cells *cells, int64_t time_ns, uint64_t count)
{
	cells->calls[interval_of(cells, time_ns)] += count;
}

void growing_cells_add(struct growing_cells *cells, const struct heap_table *table, const struct heap_allocation *row)
{
	const struct cell_sums sums = sums_of(table, row);
	growing_cells_reach(cells, row->end == HEAP_END_OPEN ? row->birth_ns : row->end_ns);
	cell_change(cells, table, row, &sums);
	if (!(row->flags & HEAP_EARLIER))
		call_count(cells, row->birth_ns, sums.blocks);
	if (row->end == HEAP_END_FREE)
		call_count(cells, row->end_ns, sums.blocks);
}

void growing_cells_end(struct growing_cells *cells, const struct heap_table *table, const struct heap_allocation *row)
{
	struct heap_allocation live = *row;
	const struct cell_sums sums = sums_of(table, row);
	/* A block is temporary by its end. */
	const struct cell_sums back = {0 - sums.blocks, 0 - sums.bytes, 0 - sums.reallocs, 0};
	growing_cells_reach(cells, row->end_ns);
	live.end = HEAP_END_OPEN;
	live.end_ns = INT64_MAX;
	cell_change(cells, table, &live, &back);
	cell_change(cells, table, row, &sums);
	if (row->end == HEAP_END_FREE)
		call_count(cells, row->end_ns, sums.blocks);
}

/* ---- looks ---- */

/* Of now, and of the whole time. */
static void weights_add(struct cell_weights *weights, const struct cell_keys *keys, const struct cell_sums *sums)
{
	weights->made_bytes += keys->birth ? sums->bytes : 0;
	weights->bytes += sums->bytes;
	weights->blocks += sums->blocks;
	weights->live_bytes += keys->kind == CELL_OPEN ? sums->bytes : 0;
	weights->never_freed_bytes += keys->kind != CELL_FREED ? sums->bytes : 0;
}

void growing_cells_take(struct growing_cells *cells, int64_t until_ns, const uint32_t *nodes, uint32_t node_count,
			struct cell_bounds *bounds, struct cell_scan_result *result)
{
	uint32_t count = growing_cells_reach(cells, until_ns);
	cell_bounds_make(bounds, -1, ((int64_t)count << cells->shift) - 1, count, NULL, 0);
	/* No point is behind it. */
	bounds->times[count] = until_ns;
	*result = (struct cell_scan_result){.calls = memory_zeroed(count, sizeof(*result->calls)),
					    .weights = memory_zeroed(node_count, sizeof(*result->weights)),
					    .is_over = cells->is_over};
	for (uint32_t i = 0; i < count; i++)
		result->calls[i] = cells->calls[i];
	for (uint32_t i = 0; i < cells->set.count && !result->is_over; i++) {
		const struct cell *cell = &cells->set.cells[i];
		struct cell_keys keys = cell_keys_of(cell);
		if (!cell->sums.blocks)
			continue;
		keys.node = nodes[keys.node];
		keys.end = keys.end == GROWING_NEVER ? bounds->count : keys.end;
		weights_add(&result->weights[keys.node], &keys, &cell->sums);
		result->is_over |= !set_add(&result->set, &keys, &cell->sums, cells->most);
	}
}

void growing_cells_fini(struct growing_cells *cells)
{
	cell_set_fini(&cells->set);
}
