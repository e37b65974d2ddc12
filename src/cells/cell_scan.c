/* SPDX-License-Identifier: MIT */
#include "cells/cell_scan.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cells/cell_row.h"
#include "query/folded.h"
#include "query/peak.h"
#include "query/scan.h"
#include "table/weight.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

enum { LEVEL_MAX = 40, GUESSED_LEVEL = 2 };

/* Cells that are found, or a sample of them. */
struct scan_found {
	const struct cell_scan *of;
	struct cell_set set;
	unsigned level;
	struct cell_weights *weights; /* by node: of what is in no cell of the sample; NULL: not wanted */
};

/* One thread's part of the pass. */
struct scan_part {
	struct scan_found found;
	uint64_t *calls;
	struct heap_peak_search *search;
	unsigned number, width;
	struct fine_way *way; /* over fine cells; NULL: over all rows */
	uint32_t *shared;
	bool *is_over;                 /* of all parts */
	uint64_t begun_rows, all_rows; /* that begin in the range: those it has seen, and all; 0: nothing is guessed */
	uint32_t next_guess;           /* at so many cells */
	bool is_guessed;               /* a sample was taken before it was necessary */
};

static void weights_add(struct scan_found *found, const struct cell *cell, const struct cell_sums *sums)
{
	const struct cell_keys keys = cell_keys_of(cell);
	uint32_t moment = found->of->moment;
	struct cell_weights *weights = &found->weights[keys.node];
	weights->made_bytes += keys.birth ? sums->bytes : 0;
	weights->bytes += sums->bytes;
	weights->blocks += sums->blocks;
	weights->live_bytes += keys.birth <= moment && moment < keys.end ? sums->bytes : 0;
	weights->never_freed_bytes += keys.kind != CELL_FREED ? sums->bytes : 0;
}

/* Weigh the cells that are not in a sample. */
static void cells_weigh(struct scan_found *found, unsigned level)
{
	for (uint32_t i = 0; i < found->set.count; i++)
		if (!level || !cell_is_in(&found->set.cells[i], level))
			weights_add(found, &found->set.cells[i], &found->set.cells[i].sums);
}

/* Take a sample of this level, or of a higher one if there is no room for it. */
static void found_thin(struct scan_found *found, unsigned level)
{
	while (level > found->level) {
		struct cell_set kept = {.cells = NULL};
		cells_weigh(found, level);
		cell_set_add_sample(&kept, &found->set, level);
		cell_set_fini(&found->set);
		found->set = kept;
		found->level = level;
		level += kept.count > found->of->sample_most && level < LEVEL_MAX;
	}
}

static uint32_t room_of(const struct scan_found *found)
{
	return found->level ? found->of->sample_most : found->of->most;
}

/* Return false if there are too many. */
static inline bool found_add(struct scan_found *found, const struct cell *like, const struct cell_sums *sums)
{
	while (cell_is_in(like, found->level)) {
		struct cell_sums *to = cell_set_at(&found->set, like, room_of(found));
		if (to) {
			cell_sums_add(to, sums);
			return true;
		}
		if (!found->weights || found->level == LEVEL_MAX)
			return false;
		found_thin(found, found->level + 1);
	}
	weights_add(found, like, sums);
	return true;
}

/* Return the keys of the cell of a row that begins and ends at these moments. Times of a damaged trace may be
   anything. */
static inline struct cell_keys keys_of(const struct cell_scan *scan, const struct heap_allocation *row, uint32_t begin,
				       uint32_t end)
{
	return (struct cell_keys){.node = scan->nodes[row->site],
				  .thread = row->thread,
				  .heap = row->heap < scan->table->dictionary->heap_count && row->heap < CELL_NO_HEAP
						  ? row->heap
						  : CELL_NO_HEAP,
				  .birth = begin,
				  .end = end > begin ? end : begin,
				  .kind = cell_row_kind(row)};
}

static inline void classes_set(struct cell *cell, const struct cell_scan *scan, const struct heap_allocation *row,
			       int64_t lifetime_ns)
{
	bool is_plain = scan->is_plain && scan->is_plain[row->site];
	uint64_t size = is_plain ? CELL_SIZE_ANY : cell_size_class(row->size_bytes),
		 life = is_plain ? CELL_LIFE_ANY : cell_life_class(lifetime_ns);
	cell->moments |= size << CELL_SIZE_SHIFT | life;
}

static __attribute__((noinline)) void sums_weigh(struct cell_sums *sums, const struct heap_table *table,
						 const struct heap_rows *rows, uint32_t i)
{
	const struct heap_allocation row = heap_rows_get(rows, i);
	const struct heap_weight weight = heap_weigh(table, &row);
	sums->blocks = weight.count;
	sums->bytes = weight.bytes;
	sums->reallocs *= weight.count;
}

/* Cells that a sample loses anyway need not be found: take one as soon as those so far promise too many for the whole
   range. The level has to rise again then, which proves that a sample was necessary, and that no lower level would
   do. */
static void sample_guess(struct scan_part *part, const struct heap_rows *rows)
{
	const struct cell_scan *scan = part->found.of;
	uint32_t count = part->found.set.count;
	if ((int64_t)rows->columns.numbers[PACK_BIRTH][rows->count - 1] > scan->bounds->times[0])
		part->begun_rows += rows->count;
	if (part->found.level || !part->all_rows || !part->begun_rows || count < part->next_guess)
		return;
	part->next_guess = 2 * count;
	double cells = (double)count * (double)part->all_rows / (double)part->begun_rows;
	part->is_guessed = cells > 1.5 * (double)((uint64_t)scan->sample_most << GUESSED_LEVEL);
	if (part->is_guessed)
		found_thin(&part->found, GUESSED_LEVEL);
}

/* calls: they are counted there; NULL: they are not. Return false if there are too many cells. */
static bool rows_add(struct scan_part *part, const struct heap_rows *rows, const struct heap_row_moments *moments,
		     uint64_t *calls)
{
	const struct cell_scan *scan = part->found.of;
	const uint32_t behind = scan->bounds->count;
	const bool is_sample = scan->table->sample_bytes;
	heap_rows_each (rows, i) {
		const uint32_t begin = moments->begins[i], end = moments->ends[i];
		if (begin >= behind || !end)
			continue;
		const struct heap_allocation row = heap_rows_get(rows, i);
		const struct cell_keys keys = keys_of(scan, &row, begin, end);
		struct cell like = cell_with(&keys);
		if (cell_is_in(&like, part->found.level))
			classes_set(&like, scan, &row, heap_lifetime_ns(&row));
		struct cell_sums sums = {.blocks = 1,
					 .bytes = row.size_bytes,
					 .reallocs = row.flags & HEAP_REALLOC ? 1 : 0,
					 .temporaries = row.flags & HEAP_TEMPORARY ? 1 : 0};
		if (is_sample)
			sums_weigh(&sums, scan->table, rows, i);
		if (calls && begin)
			calls[begin - 1] += sums.blocks;
		if (calls && row.end == HEAP_END_FREE && keys.end < behind)
			calls[keys.end - 1] += sums.blocks;
		if (!found_add(&part->found, &like, &sums))
			return false;
	}
	return true;
}

/* ---- fine cells ---- */

/* An interval of fine cells in which bounds lie: its blocks are looked at one by one. */
struct fine_cut {
	struct cell_bounds bounds; /* of it, and those in it */
	uint32_t birth;            /* the moment of what begins in it */
	uint32_t first;            /* of its blocks among the bounds that are wanted */
	struct heap_peak_search *search;
};

/* How moments of fine cells become those that are wanted. */
struct fine_way {
	int64_t stays_from_ns; /* cell_row_stays_from() */
	uint32_t *moments;     /* by fine moment, where none of its interval is a cut */
	bool *is_cut;          /* by fine moment: of an interval that is one */
	struct fine_cut *cuts;
	uint32_t cut_count;
	size_t cut_capacity;
};

static void way_make(struct fine_way *way, const struct cell_scan *scan)
{
	const struct cell_bounds *fine = &scan->fine->bounds, *bounds = scan->bounds;
	uint32_t first = 0, behind;
	way->stays_from_ns = cell_row_stays_from(scan->table);
	way->moments = memory_zeroed((size_t)fine->count + 1, sizeof(*way->moments));
	way->is_cut = memory_zeroed((size_t)fine->count + 1, sizeof(*way->is_cut));
	for (uint32_t i = 1; i < fine->count; i++) {
		while (first < bounds->count && bounds->times[first] <= fine->times[i - 1])
			first++;
		for (behind = first; behind < bounds->count && bounds->times[behind] < fine->times[i];)
			behind++;
		way->moments[i] = first;
		if (behind == first)
			continue;
		way->is_cut[i] = true;
		memory_grow(way->cuts, way->cut_count, way->cut_capacity);
		struct fine_cut *cut = &way->cuts[way->cut_count++];
		*cut = (struct fine_cut){.birth = i, .first = first};
		cell_bounds_make(&cut->bounds, fine->times[i - 1], fine->times[i], 1, &bounds->times[first],
				 behind - first);
	}
	way->moments[fine->count] = bounds->count;
	for (uint32_t i = 0; i < way->cut_count && scan->node_count; i++)
		way->cuts[i].search = heap_peak_search_new_between(
			scan->table, scan->filter, NULL, way->cuts[i].bounds.times, way->cuts[i].bounds.count - 1);
}

static void way_fini(struct fine_way *way)
{
	for (uint32_t i = 0; i < way->cut_count; i++)
		cell_bounds_fini(&way->cuts[i].bounds);
	free(way->cuts);
	free(way->moments);
	free(way->is_cut);
}

/* Return false if there are too many cells. */
static bool fine_add(struct scan_part *part)
{
	const struct cell_scan *scan = part->found.of;
	const struct fine_way *way = part->way;
	const uint32_t count = scan->fine->count, behind = scan->bounds->count,
		       from = (uint32_t)((uint64_t)count * part->number / part->width),
		       to = (uint32_t)((uint64_t)count * (part->number + 1) / part->width);
	for (uint32_t i = from; i < to; i++) {
		const struct cell *cell = &scan->fine->cells[i];
		const uint32_t birth = fine_cell_birth(cell), death = fine_cell_end(cell), begin = way->moments[birth],
			       end = way->moments[death], site = cell->place >> 32;
		if (way->is_cut[birth] || way->is_cut[death] || begin >= behind || !end)
			continue;
		struct cell like = fine_cell_at(cell, scan->nodes[site], begin, end > begin ? end : begin);
		if (scan->is_plain && scan->is_plain[site])
			like.moments = (like.moments & ~CELL_CLASSES) | CELL_CLASSES_ANY;
		if (!found_add(&part->found, &like, &cell->sums))
			return false;
	}
	return true;
}

/* Keep those rows that the cut is responsible for: begun in it, or, if no other cut has the beginning, ended in it. */
static void cut_rows_keep(struct scan_part *part, const struct fine_cut *cut, struct heap_rows *rows,
			  const struct heap_row_moments *moments)
{
	const struct cell_scan *scan = part->found.of;
	const uint32_t behind = scan->bounds->count, parts = cut->bounds.count - 1;
	struct heap_row_moments own;
	cell_row_moments(&own, &cut->bounds, part->way->stays_from_ns, rows);
	if (cut->search)
		heap_peak_search_add_between(cut->search, 0, rows, &own);
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		const uint32_t begin = moments->begins[i], end = moments->ends[i];
		const bool begins = own.begins[i] - 1u < parts, ends = own.ends[i] - 1u < parts;
		const uint32_t birth = ends && !begins && !(row.flags & HEAP_EARLIER)
					       ? cell_bounds_moment(&scan->fine->bounds, row.birth_ns)
					       : 0;
		if (part->calls && begins && begin && begin < behind)
			part->calls[begin - 1]++;
		if (part->calls && ends && row.end == HEAP_END_FREE && end && end < behind)
			part->calls[end - 1]++;
		if (!begins && (!ends || part->way->is_cut[birth]))
			rows->passes[i / 64] &= ~(UINT64_C(1) << i % 64);
	}
}

/* Return false if there are too many cells. */
static bool cut_add(struct scan_part *part, const struct fine_cut *cut)
{
	const struct cell_scan *of = part->found.of;
	const struct heap_scan_plan plan = cell_row_plan(&cut->bounds, of->filter, of->sites);
	struct heap_row_moments moments;
	struct heap_scan scan;
	bool is_good = true;
	heap_scan_begin(&scan, of->table, &plan, NULL);
	while (is_good && heap_scan_next(&scan)) {
		cell_row_moments(&moments, of->bounds, part->way->stays_from_ns, &scan.rows);
		cut_rows_keep(part, cut, &scan.rows, &moments);
		is_good = rows_add(part, &scan.rows, &moments, NULL);
	}
	heap_scan_end(&scan);
	return is_good;
}

static bool fine_run(struct scan_part *part)
{
	bool is_good = fine_add(part);
	for (uint32_t i = part->number; i < part->way->cut_count && is_good; i += part->width)
		is_good = cut_add(part, &part->way->cuts[i]);
	return is_good;
}

static void interval_add(const struct cell_scan *scan, struct cell_scan_result *result, uint32_t birth, uint64_t calls,
			 uint64_t max_bytes)
{
	if (!birth || birth >= scan->bounds->count)
		return;
	uint64_t *most = &result->max_bytes[birth - 1];
	*most = *most < max_bytes ? max_bytes : *most;
	result->calls[birth - 1] += calls;
}

/* What is known of whole intervals, and of the parts of cuts. */
static void way_take(const struct fine_way *way, const struct cell_scan *scan, struct cell_scan_result *result)
{
	const struct fine_cells *fine = scan->fine;
	result->max_bytes = memory_zeroed(scan->bounds->count, sizeof(*result->max_bytes));
	for (uint32_t i = 1; i < fine->bounds.count; i++)
		if (!way->is_cut[i])
			interval_add(scan, result, way->moments[i], fine->calls[i - 1], fine->max_bytes[i - 1]);
	for (uint32_t i = 0; i < way->cut_count; i++) {
		const struct fine_cut *cut = &way->cuts[i];
		struct heap_peak *peaks = memory_zeroed(cut->bounds.count, sizeof(*peaks));
		heap_peak_search_finish(cut->search, peaks);
		for (uint32_t k = 0; k + 1 < cut->bounds.count; k++)
			interval_add(scan, result, cut->first + k, 0, peaks[k].bytes);
		free(peaks);
	}
}

/* ---- a pass ---- */

/* Return false if there are too many cells. */
static bool all_run(struct scan_part *part)
{
	const struct cell_scan *of = part->found.of;
	const struct heap_scan_plan plan = cell_row_plan(of->bounds, of->filter, of->sites);
	const int64_t stays_from_ns = cell_row_stays_from(of->table);
	struct heap_scan scan;
	const struct heap_rows *rows;
	struct heap_row_moments moments;
	bool is_good = true;
	heap_scan_begin(&scan, of->table, &plan, part->shared);
	while (is_good && !__atomic_load_n(part->is_over, __ATOMIC_RELAXED) && (rows = heap_scan_next(&scan))) {
		cell_row_moments(&moments, of->bounds, stays_from_ns, rows);
		if (part->search)
			heap_peak_search_add_between(part->search, part->number, rows, &moments);
		is_good = rows_add(part, rows, &moments, part->calls);
		sample_guess(part, rows);
	}
	heap_scan_end(&scan);
	return is_good;
}

static void part_run(void *context)
{
	struct scan_part *part = context;
	if (part->found.of->node_count) {
		part->calls = memory_zeroed(part->found.of->bounds->count, sizeof(*part->calls));
		part->found.weights = memory_table(part->found.of->node_count, sizeof(*part->found.weights));
	}
	if (!(part->way ? fine_run(part) : all_run(part)))
		__atomic_store_n(part->is_over, true, __ATOMIC_RELAXED);
}

/* Return false if there are too many. */
static bool found_merge(struct scan_found *to, struct scan_found *from)
{
	bool is_fit = true;
	found_thin(to, from->level);
	for (uint32_t i = 0; i < from->set.count && is_fit; i++) {
		const struct cell *cell = &from->set.cells[i];
		is_fit = found_add(to, cell, &cell->sums);
	}
	cell_set_fini(&from->set);
	return is_fit;
}

static void weights_merge(struct cell_weights *to, const struct cell_weights *from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		to[i].made_bytes += from[i].made_bytes;
		to[i].bytes += from[i].bytes;
		to[i].blocks += from[i].blocks;
		to[i].live_bytes += from[i].live_bytes;
		to[i].never_freed_bytes += from[i].never_freed_bytes;
	}
}

static void parts_merge(const struct cell_scan *scan, struct scan_part *parts, unsigned width, bool *is_over)
{
	for (unsigned i = 1; i < width; i++) {
		bool is_fit = found_merge(&parts[0].found, &parts[i].found);
		*is_over |= !is_fit;
		for (uint32_t k = 0; scan->node_count && k + 1 < scan->bounds->count; k++)
			parts[0].calls[k] += parts[i].calls[k];
		weights_merge(parts[0].found.weights, parts[i].found.weights, scan->node_count);
		free(parts[i].calls);
		free(parts[i].found.weights);
	}
}

/* A sum in place of blocks: times and classes are those of most of them. */
static bool sum_add(struct scan_part *part, const struct heap_window *all, uint32_t number)
{
	const struct cell_scan *scan = part->found.of;
	const struct trace_sum *sum = &scan->table->dictionary->sums[number];
	uint32_t site = scan->table->sum_sites[number];
	struct heap_folded_part folded;
	bool is_counted = heap_folded_count(&folded, all, scan->filter, sum, site),
	     is_wanted = !scan->sites || scan->sites[site];
	struct heap_allocation row = folded.like;
	if (!is_counted || !is_wanted || !sum->count)
		return true;
	row.birth_ns = sum->birth_last_ns;
	row.end_ns = sum->end_last_ns;
	row.size_bytes = sum->bytes / sum->count;
	uint32_t begin = row.flags & HEAP_EARLIER ? 0 : cell_bounds_moment(scan->bounds, row.birth_ns),
		 end = row.end == HEAP_END_OPEN ? scan->bounds->count : cell_bounds_moment(scan->bounds, row.end_ns);
	if (begin >= scan->bounds->count || !end)
		return true;
	const struct cell_keys keys = keys_of(scan, &row, begin, end);
	struct cell like = cell_with(&keys);
	classes_set(&like, scan, &row, (int64_t)(sum->lifetime_min_ns / 2 + sum->lifetime_max_ns / 2));
	const struct cell_sums sums = {sum->count, sum->bytes, sum->reallocs, sum->temporary};
	return found_add(&part->found, &like, &sums);
}

static void sums_add(struct scan_part *part)
{
	const struct cell_scan *scan = part->found.of;
	const struct heap_window all = {.range = {0, scan->table->duration_ns}, .overhead_site = HEAP_NONE};
	for (uint32_t i = 0; i < scan->table->dictionary->sum_count && !*part->is_over; i++)
		*part->is_over = !sum_add(part, &all, i);
}

/* How many rows begin in the range, or a few more. */
static uint64_t rows_between(const struct heap_groups *groups, const struct cell_bounds *bounds)
{
	uint64_t rows = 0;
	for (uint32_t i = 0; i < groups->count; i++)
		if (groups->items[i].first_ns <= bounds->times[bounds->count - 1] &&
		    groups->items[i].last_ns > bounds->times[0])
			rows += groups->items[i].row_count;
	return rows;
}

/* Make a pass. all_rows: as in struct scan_part. Return whether what was guessed was right: no lower level would do. */
static bool scan_run(const struct cell_scan *scan, uint64_t all_rows, struct cell_scan_result *result)
{
	unsigned width = heap_scan_width(scan->table);
	bool is_guessed = false;
	uint32_t shared = 0;
	struct scan_part *parts = memory_zeroed(width, sizeof(*parts));
	struct fine_way way = {.moments = NULL};
	struct heap_peak_search *search =
		scan->node_count && !scan->fine
			? heap_peak_search_new_between(scan->table, scan->filter, scan->sites, scan->bounds->times,
						       scan->bounds->count - 1)
			: NULL;
	*result = (struct cell_scan_result){.is_over = false};
	if (scan->fine)
		way_make(&way, scan);
	for (unsigned i = 0; i < width; i++) {
		parts[i] = (struct scan_part){.found = {.of = scan},
					      .search = search,
					      .number = i,
					      .width = width,
					      .way = scan->fine ? &way : NULL,
					      .shared = &shared,
					      .is_over = &result->is_over,
					      .all_rows = all_rows,
					      .next_guess = scan->sample_most / 4};
	}
	heap_scan_threads(part_run, parts, sizeof(*parts), width);
	for (unsigned i = 0; i < width; i++)
		is_guessed |= parts[i].is_guessed;
	parts_merge(scan, parts, width, &result->is_over);
	sums_add(&parts[0]);
	if (scan->node_count)
		cells_weigh(&parts[0].found, 0);
	result->set = parts[0].found.set;
	result->level = parts[0].found.level;
	result->calls = parts[0].calls;
	result->weights = parts[0].found.weights;
	if (search)
		result->max_bytes = cell_row_peaks(search, scan->bounds->count - 1);
	else if (scan->node_count)
		way_take(&way, scan, result);
	way_fini(&way);
	free(parts);
	return !is_guessed || result->level > GUESSED_LEVEL;
}

void cell_scan(const struct cell_scan *scan, struct cell_scan_result *result)
{
	/* If many groups may be left out, it is not known how far a pass has come. */
	bool is_known = scan->node_count && !scan->fine && !scan->sites && !scan->filter->selection,
	     can_guess = is_known && (uint64_t)scan->sample_most << GUESSED_LEVEL > scan->most;
	if (scan_run(scan, can_guess ? rows_between(&scan->table->groups, scan->bounds) : 0, result))
		return;
	cell_scan_result_fini(result);
	scan_run(scan, 0, result);
}

void cell_scan_result_fini(struct cell_scan_result *result)
{
	cell_set_fini(&result->set);
	free(result->calls);
	free(result->max_bytes);
	free(result->weights);
	*result = (struct cell_scan_result){.is_over = false};
}
