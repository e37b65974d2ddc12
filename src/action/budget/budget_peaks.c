/* SPDX-License-Identifier: MIT */
/*
 * The table has allocations in the order of their beginnings. A walk through them needs the ends of those that are
 * live, in order: a priority queue, as large as the most blocks that were live at once. A change of a group changes the
 * level of each selection that counts it. Selections with the same groups have one level, which they share.
 */
#include "action/budget/budget_peaks.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/priority_queue.h"
#include "query/scan.h"

/* A block that will end. */
struct peak_end {
	int64_t time_ns;
	uint64_t bytes;
	uint32_t group;
};

struct peak_level {
	uint64_t bytes, count;
	struct budget_peak peak;
	bool is_touched; /* since the last moment that was settled */
};

/* The levels that a group belongs to. */
struct peak_level_list {
	uint32_t *items;
	uint32_t count;
};

struct peak_walk {
	const struct budget_peaks *peaks;
	struct peak_level *levels;
	uint32_t level_count;
	uint32_t *level_of;            /* by selection */
	struct peak_level_list *lists; /* by group */
	uint32_t *touched, touched_count;
	int64_t time_ns;
	struct peak_end *ends; /* a priority queue */
	size_t end_count, end_capacity;
};

/* ---- levels ---- */

/* Mix a number so that sums of such numbers tell sets apart. */
static uint64_t mixed(uint64_t number)
{
	number = (number + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 29) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 32;
}

/* The groups of each selection as two numbers: equal ones mean equal groups. */
static void levels_find(struct peak_walk *walk)
{
	const struct budget_peaks *peaks = walk->peaks;
	struct map seen = {0};
	uint64_t *keys = memory_zeroed((size_t)peaks->selection_count + 1, sizeof(*keys));
	for (uint32_t i = 0; i < peaks->group_count; i++)
		for (uint32_t k = 0; k < peaks->groups[i].count; k++)
			keys[peaks->groups[i].selections[k]] += mixed(i);
	walk->level_of = memory_zeroed((size_t)peaks->selection_count + 1, sizeof(*walk->level_of));
	for (uint32_t i = 0; i < peaks->selection_count; i++) {
		bool added;
		if (!peaks->is_wanted[i])
			continue;
		uint32_t *level = map_add(&seen, keys[i], &added);
		*level = added ? walk->level_count++ : *level;
		walk->level_of[i] = *level;
	}
	walk->levels = memory_zeroed((size_t)walk->level_count + 1, sizeof(*walk->levels));
	walk->touched = memory_zeroed((size_t)walk->level_count + 1, sizeof(*walk->touched));
	map_fini(&seen);
	free(keys);
}

static void lists_make(struct peak_walk *walk)
{
	const struct budget_peaks *peaks = walk->peaks;
	uint32_t *mark = memory_zeroed((size_t)walk->level_count + 1, sizeof(*mark));
	walk->lists = memory_zeroed((size_t)peaks->group_count + 1, sizeof(*walk->lists));
	for (uint32_t i = 0; i < peaks->group_count; i++) {
		const struct budget_peak_group *group = &peaks->groups[i];
		struct peak_level_list *list = &walk->lists[i];
		list->items = memory_resize(NULL, (size_t)group->count + 1, sizeof(*list->items));
		for (uint32_t k = 0; k < group->count; k++) {
			uint32_t level = walk->level_of[group->selections[k]];
			if (!peaks->is_wanted[group->selections[k]] || mark[level] == i + 1)
				continue;
			mark[level] = i + 1;
			list->items[list->count++] = level;
		}
	}
	free(mark);
}

static void moment_settle(struct peak_walk *walk)
{
	for (uint32_t i = 0; i < walk->touched_count; i++) {
		struct peak_level *level = &walk->levels[walk->touched[i]];
		level->is_touched = false;
		if (level->bytes > level->peak.bytes)
			level->peak = (struct budget_peak){level->bytes, level->count};
	}
	walk->touched_count = 0;
}

/* `bytes` and `count` of an end are less than none. */
static void level_change(struct peak_walk *walk, int64_t time_ns, uint32_t group, uint64_t bytes, uint64_t count)
{
	const struct peak_level_list *list = &walk->lists[group];
	if (time_ns != walk->time_ns)
		moment_settle(walk);
	walk->time_ns = time_ns;
	for (uint32_t i = 0; i < list->count; i++) {
		struct peak_level *level = &walk->levels[list->items[i]];
		level->bytes += bytes;
		level->count += count;
		if (level->is_touched)
			continue;
		level->is_touched = true;
		walk->touched[walk->touched_count++] = list->items[i];
	}
}

/* ---- ends ---- */

PRIORITY_QUEUE(end_queue, struct peak_end, const void *, one->time_ns < other->time_ns)

static void ends_until(struct peak_walk *walk, int64_t time_ns)
{
	while (walk->end_count && walk->ends[0].time_ns <= time_ns) {
		struct peak_end end = walk->ends[0];
		end_queue_pop(NULL, walk->ends, --walk->end_count);
		level_change(walk, end.time_ns, end.group, 0 - end.bytes, UINT64_MAX);
	}
}

/* ---- the walk ---- */

/* As query/peak.c has it: live at the start of the trace. */
static bool is_base(const struct heap_allocation *row)
{
	return (row->flags & HEAP_EARLIER || row->birth_ns <= 0) && (row->end == HEAP_END_OPEN || row->end_ns > 0);
}

static void row_begin(struct peak_walk *walk, const struct heap_allocation *row, int64_t time_ns)
{
	const struct budget_peaks *peaks = walk->peaks;
	uint32_t group = peaks->group_of(peaks->context, row->site, row->thread);
	bool has_end = row->end != HEAP_END_OPEN && row->end_ns <= peaks->table->duration_ns;
	/* A block that ends when it begins was never live. */
	if (!walk->lists[group].count || (has_end && row->end_ns <= time_ns))
		return;
	ends_until(walk, time_ns);
	level_change(walk, time_ns, group, row->size_bytes, 1);
	if (!has_end)
		return;
	memory_grow(walk->ends, walk->end_count, walk->end_capacity);
	end_queue_push(NULL, walk->ends, walk->end_count++, (struct peak_end){row->end_ns, row->size_bytes, group});
}

static void rows_walk(struct peak_walk *walk, bool is_of_base)
{
	const struct budget_peaks *peaks = walk->peaks;
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	struct heap_scan scan;
	const struct heap_rows *rows;
	plan.columns = PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_THREADS;
	plan.filter = peaks->filter;
	if (is_of_base && !peaks->has_earlier)
		plan.to_ns = 0;
	heap_scan_begin(&scan, peaks->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			bool is_later = !(row.flags & HEAP_EARLIER) && row.birth_ns > 0 &&
					row.birth_ns <= peaks->table->duration_ns;
			if (is_of_base ? is_base(&row) : is_later)
				row_begin(walk, &row, is_of_base ? 0 : row.birth_ns);
		}
	heap_scan_end(&scan);
}

void budget_peaks_find(const struct budget_peaks *peaks, struct budget_peak *found)
{
	struct peak_walk walk = {.peaks = peaks};
	levels_find(&walk);
	lists_make(&walk);
	rows_walk(&walk, true);
	rows_walk(&walk, false);
	moment_settle(&walk);
	for (uint32_t i = 0; i < peaks->selection_count; i++)
		if (peaks->is_wanted[i])
			found[i] = walk.levels[walk.level_of[i]].peak;
	for (uint32_t i = 0; i < peaks->group_count; i++)
		free(walk.lists[i].items);
	free(walk.lists);
	free(walk.levels);
	free(walk.level_of);
	free(walk.touched);
	free(walk.ends);
}
