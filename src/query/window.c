/* SPDX-License-Identifier: MIT */
#include "query/window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "query/by.h"
#include "query/folded.h"
#include "query/peak.h"
#include "query/scan.h"
#include "table/weight.h"
#include "trace/process_rows.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

static bool is_outstanding(const struct heap_window *window, const struct heap_allocation *allocation)
{
	if (window->gone && window->gone[allocation->thread])
		return false;
	return !heap_end_is_given_back(allocation->end) || allocation->end_ns > window->range.to_ns ||
	       window->is_moment;
}

static inline void weight_add(uint64_t *count, uint64_t *bytes, struct heap_variance *variance,
			      struct heap_weight weight)
{
	*count += weight.count;
	*bytes += weight.bytes;
	if (__builtin_expect(weight.count_variance > 0, 0))
		heap_variance_add(variance, &(struct heap_variance){weight.count_variance, weight.bytes_variance});
}

static inline void numbers_count(struct heap_numbers *numbers, const struct heap_window *window,
				 const struct heap_allocation *allocation, struct heap_weight weight)
{
	weight_add(&numbers->total_count, &numbers->total_bytes, &numbers->total_variance, weight);
	if (is_outstanding(window, allocation))
		weight_add(&numbers->outstanding_count, &numbers->outstanding_bytes, &numbers->outstanding_variance,
			   weight);
	numbers->recorded_count++;
	if (allocation->flags & HEAP_REALLOC) /* only then may it have been moved */
		numbers->realloc_count += weight.count;
	if (allocation->flags & HEAP_MOVED)
		numbers->realloc_moved_count += weight.count;
	numbers->temporary_count += !!(allocation->flags & HEAP_TEMPORARY);
	if (!heap_end_is_given_back(allocation->end))
		numbers->open_count += weight.count;
}

static inline void peak_count(struct heap_numbers *numbers, struct heap_weight weight)
{
	weight_add(&numbers->peak_count, &numbers->peak_bytes, &numbers->peak_variance, weight);
}

/* ---- adding up ---- */

/* The cell of each allocation: in `numbers` of the window, or of a thread's part of it. */
struct cells {
	struct map ids;
	size_t capacity;
};

void heap_window_cell(const struct heap_window *window, const struct heap_table *table,
		      const struct heap_allocation *allocation, struct heap_cell *cell)
{
	uint32_t heap = allocation->heap < table->dictionary->heap_count ? allocation->heap + 1 : 0;
	*cell = (struct heap_cell){window->is_by_heap ? heap : allocation->site, heap_by_of(window, table, allocation)};
}

static uint32_t cell_add(struct heap_window *window, struct cells *cells, struct heap_cell cell)
{
	bool added;
	uint32_t *id = map_add(&cells->ids, map_pair(cell.site, cell.by), &added);
	if (!added)
		return *id;
	*id = window->cell_count;
	if (window->cell_count >= cells->capacity) {
		cells->capacity = memory_capacity(cells->capacity, (size_t)window->cell_count + 1);
		window->cells = memory_resize(window->cells, cells->capacity, sizeof(*window->cells));
		window->numbers = memory_resize(window->numbers, cells->capacity, sizeof(*window->numbers));
	}
	window->cells[window->cell_count] = cell;
	window->numbers[window->cell_count++] = (struct heap_numbers){0};
	return *id;
}

static uint32_t cell_of(struct heap_window *window, struct cells *cells, const struct heap_table *table,
			const struct heap_allocation *allocation)
{
	struct heap_cell cell;
	if (heap_window_is_by_site(window))
		return allocation->site;
	heap_window_cell(window, table, allocation, &cell);
	return cell_add(window, cells, cell);
}

static void cells_begin(struct heap_window *window, const struct heap_table *table)
{
	if (!heap_window_is_by_site(window))
		return;
	window->cell_count = table->site_count;
	window->cells = memory_resize(NULL, table->site_count, sizeof(*window->cells));
	window->numbers = memory_zeroed(table->site_count, sizeof(*window->numbers));
	for (uint32_t site = 0; site < table->site_count; site++)
		window->cells[site] = (struct heap_cell){site, 0};
}

/* Of a block with others in it only what remains counts, apart. */
static inline bool is_remainder(const struct heap_window *window, const struct heap_allocation *allocation)
{
	return window->overhead_site != HEAP_NONE && allocation->flags & HEAP_HAS_NESTED;
}

/* Whether the allocation is in the rows. Window classes have rows of what began before, which is in no total. */
static inline bool has(const struct heap_window *window, const struct heap_allocation *allocation)
{
	if (is_remainder(window, allocation))
		return false;
	return heap_is_in_range(allocation, window->range) ||
	       (window->by == HEAP_BY_CLASS && heap_class_of(allocation, window->range) != HEAP_CLASS_NONE);
}

bool heap_window_has(const struct heap_window *window, const struct heap_allocation *allocation)
{
	return has(window, allocation);
}

bool heap_window_is_outstanding(const struct heap_window *window, const struct heap_allocation *allocation)
{
	return is_outstanding(window, allocation);
}

static inline void uncertain_count(struct heap_window *window, const struct heap_table *table,
				   const struct heap_allocation *allocation, struct heap_weight weight)
{
	if (heap_end_is_given_back(allocation->end))
		return;
	const struct heap_process *process = &table->processes[table->dictionary->threads[allocation->thread].process];
	if (process->last_loss_ns <= allocation->birth_ns)
		return;
	window->uncertain_count += weight.count;
	window->uncertain_bytes += weight.bytes;
}

/* One thread's part of the window. */
struct window_part {
	struct heap_window window;
	struct cells cells;
	const struct heap_table *table;
	const struct heap_filter *filter;
	uint32_t *shared;
	bool with_rows, with_peak;       /* what this pass adds up */
	struct heap_peak_search *search; /* that it is part of, as thread `number`; or NULL */
	unsigned number;
	uint32_t *last_thread; /* by cell: that used it last */
	size_t last_capacity, use_capacity;
	struct map seen; /* cell and thread */
};

static void use_find(struct window_part *part, uint32_t cell, uint32_t thread)
{
	assert(cell < part->window.cell_count);
	struct heap_window *window = &part->window;
	bool added;
	if (cell >= part->last_capacity) {
		size_t capacity = memory_capacity(part->last_capacity, (size_t)cell + 1);
		part->last_thread = memory_resize(part->last_thread, capacity, sizeof(*part->last_thread));
		memset(part->last_thread + part->last_capacity, 0xff,
		       (capacity - part->last_capacity) * sizeof(*part->last_thread));
		part->last_capacity = capacity;
	}
	part->last_thread[cell] = thread;
	map_add(&part->seen, map_pair(cell, thread), &added);
	if (!added)
		return;
	memory_grow(window->uses, window->use_count, part->use_capacity);
	window->uses[window->use_count++] = (struct heap_use){cell, thread};
}

static inline void use_add(struct window_part *part, uint32_t cell, uint32_t thread)
{
	if (cell >= part->last_capacity || part->last_thread[cell] != thread)
		use_find(part, cell, thread);
}

/* The bytes are less than none for what was handed out. */
static void numbers_add_remainder(struct heap_numbers *numbers, uint64_t blocks, uint64_t bytes, bool is_outstanding,
				  bool is_at_peak)
{
	if (is_outstanding) {
		numbers->outstanding_count += blocks;
		numbers->outstanding_bytes += bytes;
	}
	if (is_at_peak) {
		numbers->peak_count += blocks;
		numbers->peak_bytes += bytes;
	}
}

/* The remainder of a block is its size less that of the blocks directly in it. A block that lies in another and has
   others in it adds nothing. */
static void remainder_count(struct window_part *part, struct heap_allocation allocation)
{
	struct heap_window *window = &part->window;
	bool has_nested = allocation.flags & HEAP_HAS_NESTED, is_nested = allocation.flags & HEAP_NESTED;
	uint64_t size_bytes = allocation.size_bytes, blocks = has_nested,
		 bytes = (has_nested ? size_bytes : 0) - (is_nested ? size_bytes : 0);
	bool is_left = heap_is_in_range(&allocation, window->range) && is_outstanding(window, &allocation);
	if (!blocks && !bytes)
		return;
	allocation.site = window->overhead_site;
	uint32_t cell = cell_of(window, &part->cells, part->table, &allocation);
	numbers_add_remainder(&window->numbers[cell], blocks, bytes, part->with_rows && is_left,
			      part->with_peak && heap_is_live_at(&allocation, window->peak_at_ns));
}

/* The totals are those of all cells, in the end. */
static inline __attribute__((always_inline)) void part_count(struct window_part *part,
							     const struct heap_allocation *allocation, bool is_simple)
{
	struct heap_window *window = &part->window;
	if (!is_simple && window->overhead_site != HEAP_NONE)
		remainder_count(part, *allocation);
	if (!is_simple && is_remainder(window, allocation))
		return;
	if (allocation->flags & HEAP_EARLIER && part->with_rows) {
		window->earlier_count++;
		window->earlier_bytes += allocation->size_bytes;
	}
	bool is_at_peak = part->with_peak && heap_is_live_at(allocation, window->peak_at_ns);
	bool is_row =
		part->with_rows && (is_simple ? heap_is_in_range(allocation, window->range) : has(window, allocation));
	if (!is_at_peak && !is_row)
		return;
	struct heap_weight weight =
		is_simple ? (struct heap_weight){1, allocation->size_bytes, 0, 0} : heap_weigh(part->table, allocation);
	/* it may move the numbers */
	uint32_t cell = is_simple ? allocation->site : cell_of(window, &part->cells, part->table, allocation);
	struct heap_numbers *numbers = &window->numbers[cell];
	if (is_at_peak)
		peak_count(numbers, weight);
	if (!is_row)
		return;
	numbers_count(numbers, window, allocation, weight);
	use_add(part, cell, allocation->thread);
	if (heap_is_in_range(allocation, window->range))
		uncertain_count(window, part->table, allocation, weight);
}

static void part_count_any(struct window_part *part, const struct heap_rows *rows)
{
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		part_count(part, &row, false);
	}
}

/* Of a simple window, and no sample. */
static void part_count_simple(struct window_part *part, const struct heap_rows *rows)
{
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		part_count(part, &row, true);
	}
}

static struct heap_scan_plan part_plan(const struct window_part *part)
{
	struct heap_scan_plan plan = heap_window_plan(&part->window, part->filter);
	if (part->with_rows)
		return plan;
	if (!part->search)
		plan.from_ns = plan.to_ns = plan.live_from_ns = part->window.peak_at_ns;
	if (heap_window_is_by_site(&part->window))
		plan.columns = PACK_TIMES | PACK_SIZES | (part->with_peak ? PACK_SITES : 0);
	return plan;
}

static void part_scan(void *context)
{
	struct window_part *part = context;
	const struct heap_scan_plan plan = part_plan(part);
	struct heap_scan scan;
	const struct heap_rows *rows;
	bool is_simple = heap_window_is_simple(&part->window) && !part->table->sample_bytes;
	heap_scan_begin(&scan, part->table, &plan, part->shared);
	while ((rows = heap_scan_next(&scan))) {
		if (part->search)
			heap_peak_search_add(part->search, part->number, rows);
		if (part->with_rows || part->with_peak)
			(is_simple ? part_count_simple : part_count_any)(part, rows);
	}
	heap_scan_end(&scan);
}

/* Add what another thread found. */
static void part_merge(struct window_part *to, struct window_part *from)
{
	struct heap_window *window = &to->window;
	uint32_t *cell_ids = memory_resize(NULL, from->window.cell_count, sizeof(*cell_ids));
	for (uint32_t i = 0; i < from->window.cell_count; i++) {
		cell_ids[i] = heap_window_is_by_site(window) ? i : cell_add(window, &to->cells, from->window.cells[i]);
		heap_numbers_add(&window->numbers[cell_ids[i]], &from->window.numbers[i]);
	}
	for (size_t i = 0; i < from->window.use_count; i++)
		use_add(to, cell_ids[from->window.uses[i].cell], from->window.uses[i].thread);
	window->earlier_count += from->window.earlier_count;
	window->earlier_bytes += from->window.earlier_bytes;
	window->uncertain_count += from->window.uncertain_count;
	window->uncertain_bytes += from->window.uncertain_bytes;
	free(cell_ids);
}

static void part_fini(struct window_part *part)
{
	map_fini(&part->cells.ids);
	map_fini(&part->seen);
	free(part->last_thread);
}

/* Blocks that began before the range are in no total but that of the peak. */
static void totals_sum(struct heap_window *window)
{
	for (uint32_t i = 0; i < window->cell_count; i++) {
		struct heap_numbers numbers = window->numbers[i];
		bool is_before = window->by == HEAP_BY_CLASS &&
				 (window->cells[i].by == HEAP_AOFI || window->cells[i].by == HEAP_AOFO);
		if (is_before)
			numbers = (struct heap_numbers){.peak_count = numbers.peak_count,
							.peak_bytes = numbers.peak_bytes,
							.peak_variance = numbers.peak_variance};
		heap_numbers_add(&window->totals, &numbers);
	}
}

/* Take the sums that the table has without a pass: all of the sites that pass. */
static void window_add_sums(struct heap_window *window, const struct heap_sums *sums, const struct heap_filter *filter)
{
	assert(sums->numbers && heap_window_is_by_site(window));
	for (uint32_t i = 0; i < window->cell_count; i++) {
		if (!heap_filter_passes_site(filter, i))
			continue;
		heap_numbers_add(&window->numbers[i], &sums->numbers[i]);
		heap_numbers_add(&window->totals, &sums->numbers[i]);
	}
	window->uses = memory_resize(window->uses, sums->use_count, sizeof(*window->uses));
	for (size_t i = 0; i < sums->use_count; i++)
		if (heap_filter_passes_site(filter, sums->uses[i].cell))
			window->uses[window->use_count++] = sums->uses[i];
}

static bool is_split_by_heap(const struct heap_window *window)
{
	return window->is_by_heap || window->by == HEAP_BY_HEAP;
}

static unsigned window_columns(const struct heap_window *window)
{
	return PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_THREADS | (is_split_by_heap(window) ? PACK_HEAPS : 0);
}

struct heap_scan_plan heap_window_plan(const struct heap_window *window, const struct heap_filter *filter)
{
	/* Rows by class have what began before, too, whenever it ended. */
	int64_t live_from_ns = window->by == HEAP_BY_CLASS ? INT64_MIN : window->range.from_ns;
	return (struct heap_scan_plan){
		window->range.from_ns, window->range.to_ns, live_from_ns, window_columns(window), filter, NULL};
}

/* Nothing is less than nothing: blocks of which the one around began before the trace, or that overlap, are more than
   was there. */
static void remainder_settle(struct heap_window *window)
{
	for (uint32_t i = 0; window->overhead_site != HEAP_NONE && i < window->cell_count; i++) {
		struct heap_numbers *numbers = &window->numbers[i];
		if (window->cells[i].site != window->overhead_site)
			continue;
		if ((int64_t)numbers->outstanding_bytes < 0) {
			window->totals.outstanding_bytes -= numbers->outstanding_bytes;
			numbers->outstanding_bytes = 0;
		}
		if ((int64_t)numbers->peak_bytes < 0) {
			window->totals.peak_bytes -= numbers->peak_bytes;
			numbers->peak_bytes = 0;
		}
	}
}

/* ---- what is folded ---- */

static void sum_count(struct heap_numbers *numbers, const struct trace_sum *sum, bool is_outstanding)
{
	const struct heap_variance variance = {sum->count_variance, sum->bytes_variance};
	numbers->total_count += sum->count;
	numbers->total_bytes += sum->bytes;
	numbers->recorded_count += sum->recorded;
	numbers->realloc_count += sum->reallocs;
	numbers->realloc_moved_count += sum->moved;
	numbers->temporary_count += sum->temporary;
	numbers->open_count += sum->flags & TRACE_SUM_OPEN ? sum->count : 0;
	heap_variance_add(&numbers->total_variance, &variance);
	if (!is_outstanding)
		return;
	numbers->outstanding_count += sum->count;
	numbers->outstanding_bytes += sum->bytes;
	heap_variance_add(&numbers->outstanding_variance, &variance);
}

static void sum_count_peak(struct heap_numbers *numbers, const struct trace_sum *sum)
{
	numbers->peak_count += sum->peak_count;
	numbers->peak_bytes += sum->peak_bytes;
	heap_variance_add(&numbers->peak_variance,
			  &(struct heap_variance){sum->peak_count_variance, sum->peak_bytes_variance});
}

static void part_add_sum(struct window_part *part, uint32_t number)
{
	struct heap_window *window = &part->window;
	const struct trace_sum *sum = &part->table->dictionary->sums[number];
	struct heap_folded_part how;
	if (!heap_folded_count(&how, window, part->filter, sum, part->table->sum_sites[number]))
		return;
	if (sum->flags & TRACE_SUM_EARLIER) {
		window->earlier_count += sum->count;
		window->earlier_bytes += sum->bytes;
	}
	if (!how.is_row && !how.is_at_peak)
		return;
	uint32_t cell = cell_of(window, &part->cells, part->table, &how.like);
	if (how.is_at_peak) {
		sum_count_peak(&window->numbers[cell], sum);
		sum_count_peak(&window->totals, sum);
	}
	if (how.is_row) {
		sum_count(&window->numbers[cell], sum, how.is_outstanding);
		window->uses[window->use_count++] = (struct heap_use){cell, sum->thread};
		window->folded[window->folded_count++] = (struct heap_folded){cell, number};
	}
	if (how.is_row && how.is_total)
		sum_count(&window->totals, sum, how.is_outstanding);
}

static void part_add_folded(struct window_part *part)
{
	struct heap_window *window = &part->window;
	uint32_t count = part->table->dictionary->sum_count;
	if (!count)
		return;
	window->uses = memory_resize(window->uses, window->use_count + count, sizeof(*window->uses));
	window->folded = memory_resize(NULL, count, sizeof(*window->folded));
	for (uint32_t i = 0; i < count; i++)
		part_add_sum(part, i);
	if (window->folded_count)
		heap_uses_sort(window->uses, window->use_count);
}

/* How a window is made, beside what it begins with. */
struct window_making {
	const struct heap_table *table;
	const struct heap_filter *filter;
	bool is_summed;                  /* most of it is in the sums of the table */
	struct heap_peak_search *search; /* for the moment of the peak, which is not known yet; NULL: it is */
	struct window_part *parts;
	unsigned width;
};

static void parts_scan(struct window_making *making, bool with_rows, bool with_peak, struct heap_peak_search *search)
{
	uint32_t shared = 0;
	for (unsigned i = 0; i < making->width; i++) {
		struct window_part *part = &making->parts[i];
		part->shared = &shared;
		part->with_rows = with_rows;
		part->with_peak = with_peak;
		part->search = search;
	}
	heap_scan_threads(part_scan, making->parts, sizeof(*making->parts), making->width);
}

/* The search for the peak needs all that the rows need, so one pass does both. Another pass counts the blocks that were
   live at the moment that was found. */
static void parts_search(struct window_making *making)
{
	struct heap_peak peak;
	parts_scan(making, !making->is_summed, false, making->search);
	heap_peak_search_finish(making->search, &peak);
	for (unsigned i = 0; i < making->width; i++)
		making->parts[i].window.peak_at_ns = peak.time_ns;
	parts_scan(making, false, true, NULL);
}

static void window_sum(struct heap_window *window, const struct heap_window *empty, struct window_making *making)
{
	making->width = heap_scan_width(making->table);
	struct window_part *parts = making->parts = memory_zeroed(making->width, sizeof(*parts));
	for (unsigned i = 0; i < making->width; i++) {
		parts[i] = (struct window_part){
			.window = *empty, .table = making->table, .filter = making->filter, .number = i};
		cells_begin(&parts[i].window, making->table);
	}
	if (making->search)
		parts_search(making);
	else if (!making->filter->without_peak || !making->is_summed)
		parts_scan(making, !making->is_summed, !making->filter->without_peak, NULL);
	for (unsigned i = 1; i < making->width; i++) {
		part_merge(&parts[0], &parts[i]);
		heap_window_fini(&parts[i].window);
		part_fini(&parts[i]);
	}
	totals_sum(&parts[0].window);
	if (making->is_summed)
		window_add_sums(&parts[0].window, &making->table->sums, making->filter);
	else
		heap_uses_sort(parts[0].window.uses, parts[0].window.use_count);
	part_add_folded(&parts[0]);
	*window = parts[0].window;
	part_fini(&parts[0]);
	free(parts);
	remainder_settle(window);
}

void heap_window_make(struct heap_window *window, const struct heap_table *table, const struct heap_filter *filter,
		      struct heap_range range, enum heap_by by)
{
	struct heap_peak peak;
	int64_t peak_from_ns;
	bool is_peak_folded, is_all_time = !range.from_ns && range.to_ns == table->duration_ns;
	bool is_known =
		heap_folded_peak(&peak, table, filter, range, &peak_from_ns, &is_peak_folded) || filter->without_peak;
	struct window_making making = {
		.table = table,
		.filter = filter,
		.is_summed = is_all_time && filter->is_of_sites && by == HEAP_BY_NONE && table->sums.numbers &&
			     !filter->gone,
		.search = is_known ? NULL
				   : heap_peak_search_new(table, filter, (struct heap_range){peak_from_ns, range.to_ns},
							  1)};
	const struct heap_window empty = {.range = range,
					  .is_moment = filter->moment.is_asked,
					  .gone = filter->gone,
					  .by = by,
					  .peak_at_ns = peak.time_ns,
					  .overhead_site = filter->has_overhead ? table->site_count - 1 : HEAP_NONE,
					  .peak_from_ns = peak_from_ns,
					  .is_peak_folded = is_peak_folded};
	window_sum(window, &empty, &making);
	heap_by_find_shared(window, table);
}

void heap_window_make_by_heap(struct heap_window *window, const struct heap_window *like,
			      const struct heap_table *table, const struct heap_filter *filter)
{
	struct window_making making = {.table = table, .filter = filter};
	const struct heap_window empty = {.range = like->range,
					  .is_moment = like->is_moment,
					  .gone = like->gone,
					  .by = like->by,
					  .is_by_heap = true,
					  .peak_at_ns = like->peak_at_ns,
					  .overhead_site = HEAP_NONE,
					  .peak_from_ns = like->peak_from_ns,
					  .is_peak_folded = like->is_peak_folded};
	window_sum(window, &empty, &making);
	heap_by_find_shared(window, table);
}

void heap_window_fini(struct heap_window *window)
{
	free(window->label_ends);
	free(window->cells);
	free(window->numbers);
	free(window->uses);
	free(window->folded);
	*window = (struct heap_window){0};
}
