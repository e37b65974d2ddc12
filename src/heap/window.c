/* SPDX-License-Identifier: MIT */
#include "heap/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "heap/walk.h"

static bool is_in_range(const struct heap_allocation *allocation, struct heap_range range)
{
	return allocation->birth_ns >= range.from_ns && allocation->birth_ns <= range.to_ns && !(allocation->flags & HEAP_EARLIER);
}

static bool is_outstanding(const struct heap_allocation *allocation, struct heap_range range)
{
	return !heap_end_is_given_back(allocation->end) || allocation->end_ns > range.to_ns;
}

static bool is_live_at(const struct heap_allocation *allocation, int64_t time_ns)
{
	bool has_begun = allocation->birth_ns <= time_ns || allocation->flags & HEAP_EARLIER;
	return has_begun && (allocation->end_ns > time_ns || allocation->end == HEAP_END_OPEN);
}

void heap_numbers_add(struct heap_numbers *to, const struct heap_numbers *from)
{
	to->total_count += from->total_count;
	to->total_bytes += from->total_bytes;
	to->outstanding_count += from->outstanding_count;
	to->outstanding_bytes += from->outstanding_bytes;
	to->realloc_count += from->realloc_count;
	to->realloc_moved_count += from->realloc_moved_count;
	to->temporary_count += from->temporary_count;
	to->open_count += from->open_count;
	to->peak_count += from->peak_count;
	to->peak_bytes += from->peak_bytes;
}

static void numbers_count(struct heap_numbers *numbers, const struct heap_allocation *allocation, struct heap_range range)
{
	numbers->total_count++;
	numbers->total_bytes += allocation->size_bytes;
	if (is_outstanding(allocation, range)) {
		numbers->outstanding_count++;
		numbers->outstanding_bytes += allocation->size_bytes;
	}
	numbers->realloc_count += !!(allocation->flags & HEAP_REALLOC);
	numbers->realloc_moved_count += !!(allocation->flags & HEAP_MOVED);
	numbers->temporary_count += !!(allocation->flags & HEAP_TEMPORARY);
	numbers->open_count += !heap_end_is_given_back(allocation->end);
}

/* ---- splitting ---- */

static const char *const by_names[] = {"", "process", "thread", "heap", "size", "lifetime", "time", "class"};
enum { BY_COUNT = sizeof(by_names) / sizeof(*by_names), DECADES = 12, FIRST_DECADE_NS = 1000 };

const char *heap_by_name(enum heap_by by)
{
	return by_names[by];
}

enum heap_by heap_by_find(const char *name)
{
	for (int by = 1; by < BY_COUNT; by++)
		if (!strcasecmp(name, by_names[by]))
			return (enum heap_by)by;
	return HEAP_BY_NONE;
}

/* Sizes by powers of two: 0 for none, n for those of n bits. */
static uint32_t size_class(uint64_t size_bytes)
{
	return size_bytes ? 64 - (uint32_t)__builtin_clzll(size_bytes) : 0;
}

static int64_t decade_ns(uint32_t decade)
{
	int64_t time_ns = FIRST_DECADE_NS;
	while (decade-- > 0)
		time_ns *= 10;
	return time_ns;
}

static uint32_t lifetime_decade(int64_t lifetime_ns)
{
	uint32_t decade = 0;
	while (decade < DECADES - 1 && lifetime_ns >= decade_ns(decade))
		decade++;
	return decade;
}

static uint32_t time_part(struct heap_range range, int64_t time_ns)
{
	if (time_ns < range.from_ns)
		return 0;
	uint64_t length = (uint64_t)(range.to_ns - range.from_ns) + 1, at = (uint64_t)(time_ns - range.from_ns);
	uint64_t part = (uint64_t)((unsigned __int128)at * HEAP_TIME_PARTS / length);
	return part < HEAP_TIME_PARTS ? (uint32_t)part : HEAP_TIME_PARTS - 1;
}

static uint32_t by_of(const struct heap_window *window, const struct heap_table *table, const struct heap_allocation *allocation)
{
	switch (window->by) {
	case HEAP_BY_NONE: break;
	case HEAP_BY_PROCESS: return table->dictionary->threads[allocation->thread].process;
	case HEAP_BY_THREAD: return allocation->thread;
	case HEAP_BY_HEAP: return allocation->heap;
	case HEAP_BY_SIZE: return size_class(allocation->size_bytes);
	case HEAP_BY_LIFETIME: return lifetime_decade(heap_lifetime_ns(allocation));
	case HEAP_BY_TIME: return time_part(window->range, allocation->birth_ns);
	case HEAP_BY_CLASS: return heap_class_of(allocation, window->range);
	}
	return 0;
}

static int process_text(char **text, const struct heap_table *table, uint32_t id)
{
	const struct trace_process *process = &table->dictionary->processes[id];
	return asprintf(text, "pid %" PRIu32 " (%s)", process->pid, text_file_name(process->image));
}

static int thread_text(char **text, const struct heap_table *table, uint32_t id)
{
	const struct trace_thread *thread = &table->dictionary->threads[id];
	const struct trace_process *process = &table->dictionary->processes[thread->process];
	return asprintf(text, "pid %" PRIu32 " thread %" PRIu32 "%s%s", process->pid, thread->tid, thread->name && *thread->name ? " " : "",
			thread->name ? thread->name : "");
}

static int heap_text(char **text, const struct heap_table *table, uint32_t id)
{
	if (id >= table->dictionary->heap_count)
		return asprintf(text, "[no heap]");
	const struct trace_heap *heap = &table->dictionary->heaps[id];
	return asprintf(text, "%s 0x%" PRIx64 " in pid %" PRIu32, heap->name, heap->handle, table->dictionary->processes[heap->process].pid);
}

static int size_text(char **text, uint32_t class)
{
	if (class < 2)
		return asprintf(text, "%" PRIu32 " B", class);
	return asprintf(text, "%s to %s", text_bytes(UINT64_C(1) << (class - 1)).data, text_bytes((UINT64_C(1) << class) - 1).data);
}

static int lifetime_text(char **text, uint32_t decade)
{
	if (decade == 0)
		return asprintf(text, "below %s", text_duration(FIRST_DECADE_NS).data);
	return decade == DECADES - 1 ? asprintf(text, "%s and longer", text_duration(decade_ns(decade - 1)).data)
				     : asprintf(text, "%s to %s", text_duration(decade_ns(decade - 1)).data, text_duration(decade_ns(decade)).data);
}

static int time_text(char **text, struct heap_range range, uint32_t part)
{
	int64_t length = range.to_ns - range.from_ns;
	int64_t from = range.from_ns + (int64_t)((__int128)length * part / HEAP_TIME_PARTS);
	int64_t to = range.from_ns + (int64_t)((__int128)length * (part + 1) / HEAP_TIME_PARTS);
	return asprintf(text, "%s to %s", text_duration(from).data, text_duration(to).data);
}

char *heap_by_text(const struct heap_window *window, const struct heap_table *table, uint32_t by)
{
	char *text = NULL;
	int length = -1;
	switch (window->by) {
	case HEAP_BY_NONE: length = asprintf(&text, "%s", ""); break;
	case HEAP_BY_PROCESS: length = process_text(&text, table, by); break;
	case HEAP_BY_THREAD: length = thread_text(&text, table, by); break;
	case HEAP_BY_HEAP: length = heap_text(&text, table, by); break;
	case HEAP_BY_SIZE: length = size_text(&text, by); break;
	case HEAP_BY_LIFETIME: length = lifetime_text(&text, by); break;
	case HEAP_BY_TIME: length = time_text(&text, window->range, by); break;
	case HEAP_BY_CLASS: length = asprintf(&text, "%s", heap_class_name((enum heap_class)by)); break;
	}
	if (length < 0)
		memory_exhausted(0);
	return text;
}

/* ---- the peak ---- */

static void window_find_peak(struct heap_window *window, const struct heap_table *table, const struct heap_filter *filter)
{
	struct heap_walk walk;
	heap_walk_begin(&walk, table, filter);
	while (heap_walk_next_time(&walk) <= window->range.from_ns && heap_walk_next(&walk))
		;
	uint64_t peak_bytes = walk.live_bytes;
	window->peak_at_ns = window->range.from_ns;
	while (heap_walk_next_time(&walk) <= window->range.to_ns && heap_walk_next(&walk)) {
		if (walk.live_bytes <= peak_bytes)
			continue;
		peak_bytes = walk.live_bytes;
		window->peak_at_ns = walk.time_ns;
	}
}

/* ---- adding up ---- */

/* The cell of each allocation, found again for the next pass over them. */
struct cells {
	struct map ids;
	size_t capacity;
};

static bool is_by_site(const struct heap_window *window)
{
	return window->by == HEAP_BY_NONE && !window->is_by_heap;
}

void heap_window_cell(const struct heap_window *window, const struct heap_table *table, const struct heap_allocation *allocation,
		      struct heap_cell *cell)
{
	uint32_t heap = allocation->heap < table->dictionary->heap_count ? allocation->heap + 1 : 0;
	*cell = (struct heap_cell){window->is_by_heap ? heap : allocation->site, by_of(window, table, allocation)};
}

static uint32_t cell_of(struct heap_window *window, struct cells *cells, const struct heap_table *table, const struct heap_allocation *allocation)
{
	struct heap_cell cell;
	bool added;
	if (is_by_site(window))
		return allocation->site;
	heap_window_cell(window, table, allocation, &cell);
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

static void cells_begin(struct heap_window *window, const struct heap_table *table)
{
	if (!is_by_site(window))
		return;
	window->cell_count = table->site_count;
	window->cells = memory_resize(NULL, table->site_count, sizeof(*window->cells));
	window->numbers = memory_zeroed(table->site_count, sizeof(*window->numbers));
	for (uint32_t site = 0; site < table->site_count; site++)
		window->cells[site] = (struct heap_cell){site, 0};
}

/* Whether the allocation is in the rows. Window classes have rows of what began before, which is in no total. */
bool heap_window_has(const struct heap_window *window, const struct heap_allocation *allocation)
{
	return is_in_range(allocation, window->range) ||
	       (window->by == HEAP_BY_CLASS && heap_class_of(allocation, window->range) != HEAP_CLASS_NONE);
}

bool heap_window_is_outstanding(const struct heap_window *window, const struct heap_allocation *allocation)
{
	return is_outstanding(allocation, window->range);
}

static void uncertain_count(struct heap_window *window, const struct heap_table *table, const struct heap_allocation *allocation)
{
	const struct heap_process *process = &table->processes[table->dictionary->threads[allocation->thread].process];
	if (heap_end_is_given_back(allocation->end) || process->last_loss_ns <= allocation->birth_ns)
		return;
	window->uncertain_count++;
	window->uncertain_bytes += allocation->size_bytes;
}

static void window_count(struct heap_window *window, struct cells *cells, const struct heap_table *table, const struct heap_filter *filter)
{
	for (uint32_t i = 0; i < table->count; i++) {
		const struct heap_allocation *allocation = &table->allocations[i];
		if (!heap_filter_passes(filter, allocation))
			continue;
		if (allocation->flags & HEAP_EARLIER) {
			window->earlier_count++;
			window->earlier_bytes += allocation->size_bytes;
		}
		bool is_at_peak = is_live_at(allocation, window->peak_at_ns), is_row = heap_window_has(window, allocation);
		if (!is_at_peak && !is_row)
			continue;
		uint32_t cell = cell_of(window, cells, table, allocation); /* it may move the numbers */
		struct heap_numbers *numbers = &window->numbers[cell];
		if (is_at_peak) {
			numbers->peak_count++;
			numbers->peak_bytes += allocation->size_bytes;
			window->totals.peak_count++;
			window->totals.peak_bytes += allocation->size_bytes;
		}
		if (is_row)
			numbers_count(numbers, allocation, window->range);
		if (is_in_range(allocation, window->range)) {
			numbers_count(&window->totals, allocation, window->range);
			uncertain_count(window, table, allocation);
		}
	}
}

static int use_compare(const void *a, const void *b)
{
	const struct heap_use *left = a, *right = b;
	if (left->cell != right->cell)
		return left->cell < right->cell ? -1 : 1;
	return (left->thread > right->thread) - (left->thread < right->thread);
}

/* Lifetimes by cell (a counting sort), and which threads used which cell. */
static void window_collect(struct heap_window *window, struct cells *cells, const struct heap_table *table, const struct heap_filter *filter)
{
	uint32_t count = window->cell_count;
	uint32_t *next = memory_zeroed((size_t)count + 1, sizeof(*next));
	uint32_t *last_thread = memory_resize(NULL, count, sizeof(*last_thread));
	struct map seen = {0};
	size_t use_capacity = 0;
	window->lifetime_starts = memory_zeroed((size_t)count + 1, sizeof(*window->lifetime_starts));
	for (uint32_t i = 0; i < count; i++) {
		window->lifetime_starts[i + 1] = window->lifetime_starts[i] + (uint32_t)window->numbers[i].total_count;
		next[i] = window->lifetime_starts[i];
		last_thread[i] = HEAP_NONE;
	}
	window->lifetimes = memory_resize(NULL, window->lifetime_starts[count], sizeof(*window->lifetimes));
	for (uint32_t i = 0; i < table->count; i++) {
		const struct heap_allocation *allocation = &table->allocations[i];
		if (!heap_filter_passes(filter, allocation) || !heap_window_has(window, allocation))
			continue;
		uint32_t cell = cell_of(window, cells, table, allocation);
		window->lifetimes[next[cell]++] = heap_lifetime_ns(allocation);
		if (last_thread[cell] == allocation->thread)
			continue;
		last_thread[cell] = allocation->thread;
		bool added;
		map_add(&seen, map_pair(cell, allocation->thread), &added);
		if (!added)
			continue;
		memory_grow(window->uses, window->use_count, use_capacity);
		window->uses[window->use_count++] = (struct heap_use){cell, allocation->thread};
	}
	if (window->use_count)
		qsort(window->uses, window->use_count, sizeof(*window->uses), use_compare);
	map_fini(&seen);
	free(last_thread);
	free(next);
}

void heap_window_make(struct heap_window *window, const struct heap_table *table, const struct heap_filter *filter, struct heap_range range,
		      enum heap_by by, bool is_by_heap)
{
	struct cells cells = {.capacity = 0};
	*window = (struct heap_window){.range = range, .by = by, .is_by_heap = is_by_heap};
	cells_begin(window, table);
	window_find_peak(window, table, filter);
	window_count(window, &cells, table, filter);
	window_collect(window, &cells, table, filter);
	map_fini(&cells.ids);
}

void heap_window_fini(struct heap_window *window)
{
	free(window->cells);
	free(window->numbers);
	free(window->lifetimes);
	free(window->lifetime_starts);
	free(window->uses);
	*window = (struct heap_window){0};
}
