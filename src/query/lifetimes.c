/* SPDX-License-Identifier: MIT */
#include "query/lifetimes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "query/window.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

/* Lifetimes that are not in their list yet: threads that share a place for each one would wait for each other all the
   time. */
enum { GATHERED_MAX = 15 };
struct gathered {
	int64_t values[GATHERED_MAX];
	uint64_t count;
};

struct collecting {
	const struct heap_window *window;
	const struct heap_table *table;
	const struct heap_filter *filter;
	const uint32_t *list_of;
	uint32_t list_count;
	const struct map *cells; /* NULL: cells are sites */
	struct heap_lifetimes *lifetimes;
	uint64_t *filled;          /* by list, shared by all threads */
	struct gathered *gathered; /* by list, this thread's */
	uint32_t *shared;
	/* of a simple window: whether a site has a list; NULL: most rows are of such sites */
	const bool *sites;
};

static void gathered_put(struct collecting *collecting, uint32_t list)
{
	assert(list < collecting->list_count && collecting->gathered[list].count <= GATHERED_MAX);
	struct gathered *gathered = &collecting->gathered[list];
	uint64_t start = collecting->lifetimes->starts[list], room = collecting->lifetimes->starts[list + 1] - start;
	uint64_t place = __atomic_fetch_add(&collecting->filled[list], gathered->count, __ATOMIC_RELAXED);
	/* A damaged index may say otherwise the second time. */
	if (place <= room && gathered->count <= room - place)
		memcpy(&collecting->lifetimes->values[start + place], gathered->values,
		       gathered->count * sizeof(*gathered->values));
	gathered->count = 0;
}

static uint32_t cell_list(const struct collecting *collecting, const struct heap_allocation *allocation)
{
	struct heap_cell cell;
	heap_window_cell(collecting->window, collecting->table, allocation, &cell);
	const uint32_t *found =
		collecting->cells ? map_find(collecting->cells, map_pair(cell.site, cell.by)) : &cell.site;
	return found ? collecting->list_of[*found] : HEAP_NONE;
}

static inline void lifetime_add(struct collecting *collecting, uint32_t list, const struct heap_allocation *allocation)
{
	struct gathered *gathered = &collecting->gathered[list];
	gathered->values[gathered->count++] = heap_lifetime_ns(allocation);
	if (gathered->count == GATHERED_MAX)
		gathered_put(collecting, list);
}

static void collect_any(struct collecting *collecting, const struct heap_rows *rows)
{
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		uint32_t list = heap_window_has(collecting->window, &row) ? cell_list(collecting, &row) : HEAP_NONE;
		if (list != HEAP_NONE)
			lifetime_add(collecting, list, &row);
	}
}

static void collect_simple(struct collecting *collecting, const struct heap_rows *rows)
{
	const struct heap_range range = collecting->window->range;
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		uint32_t list = heap_is_in_range(&row, range) ? collecting->list_of[row.site] : HEAP_NONE;
		if (list != HEAP_NONE)
			lifetime_add(collecting, list, &row);
	}
}

static void collecting_scan(void *context)
{
	struct collecting *collecting = context;
	struct heap_scan_plan plan = heap_window_plan(collecting->window, collecting->filter);
	struct heap_scan scan;
	const struct heap_rows *rows;
	bool is_simple = heap_window_is_simple(collecting->window);
	if (is_simple) {
		plan.columns = PACK_TIMES | PACK_SITES;
		plan.sites = collecting->sites;
	}
	heap_scan_begin(&scan, collecting->table, &plan, collecting->shared);
	while ((rows = heap_scan_next(&scan)))
		(is_simple ? collect_simple : collect_any)(collecting, rows);
	heap_scan_end(&scan);
	for (uint32_t list = 0; list < collecting->list_count; list++)
		gathered_put(collecting, list);
}

static void lifetimes_reserve(struct heap_lifetimes *lifetimes, const struct heap_window *window,
			      const struct trace_sum *sums, const uint32_t *list_of, uint32_t count)
{
	lifetimes->starts = memory_zeroed((size_t)count + 1, sizeof(*lifetimes->starts));
	for (uint32_t cell = 0; cell < window->cell_count; cell++)
		if (list_of[cell] != HEAP_NONE)
			lifetimes->starts[list_of[cell] + 1] += window->numbers[cell].recorded_count;
	for (size_t i = 0; i < window->folded_count; i++)
		if (list_of[window->folded[i].cell] != HEAP_NONE)
			lifetimes->starts[list_of[window->folded[i].cell] + 1] -= sums[window->folded[i].sum].recorded;
	for (uint32_t i = 0; i < count; i++)
		lifetimes->starts[i + 1] += lifetimes->starts[i];
	lifetimes->values = memory_zeroed(lifetimes->starts[count], sizeof(*lifetimes->values));
}

/* Looked for are sites of at most one row in so many. */
enum { SELDOM = 4 };

/* NULL: it is not worth while to look for them. */
static bool *sites_with_lists(const struct heap_window *window, const uint32_t *list_of, uint64_t lifetime_count)
{
	uint64_t all = 0;
	for (uint32_t site = 0; site < window->cell_count; site++)
		all += window->numbers[site].recorded_count;
	if (lifetime_count > all / SELDOM)
		return NULL;
	bool *sites = memory_zeroed(window->cell_count, sizeof(*sites));
	for (uint32_t site = 0; site < window->cell_count; site++)
		sites[site] = list_of[site] != HEAP_NONE;
	return sites;
}

void heap_window_lifetimes(struct heap_lifetimes *lifetimes, const struct heap_window *window,
			   const struct heap_table *table, const struct heap_filter *filter, const uint32_t *list_of,
			   uint32_t count)
{
	unsigned width = heap_scan_width(table);
	struct collecting *parts = memory_resize(NULL, width, sizeof(*parts));
	struct map cells = {0};
	uint64_t *filled = memory_zeroed(count, sizeof(*filled));
	uint32_t shared = 0;
	bool added;
	lifetimes_reserve(lifetimes, window, table->dictionary->sums, list_of, count);
	bool is_by_site = heap_window_is_by_site(window);
	for (uint32_t i = 0; i < window->cell_count && !is_by_site; i++)
		*map_add(&cells, map_pair(window->cells[i].site, window->cells[i].by), &added) = i;
	bool *sites = is_by_site ? sites_with_lists(window, list_of, lifetimes->starts[count]) : NULL;
	for (unsigned i = 0; i < width; i++)
		parts[i] = (struct collecting){window,    table,  filter,
					       list_of,   count,  is_by_site ? NULL : &cells,
					       lifetimes, filled, memory_zeroed(count, sizeof(struct gathered)),
					       &shared,   sites};
	if (lifetimes->starts[count])
		heap_scan_threads(collecting_scan, parts, sizeof(*parts), width);
	/* Nobody is to sort what was not collected. */
	if (cancel_is_asked(filter->is_cancelled))
		memset(lifetimes->starts, 0, ((size_t)count + 1) * sizeof(*lifetimes->starts));
	for (unsigned i = 0; i < width; i++)
		free(parts[i].gathered);
	map_fini(&cells);
	free(sites);
	free(filled);
	free(parts);
}

void heap_lifetimes_fini(struct heap_lifetimes *lifetimes)
{
	free(lifetimes->values);
	free(lifetimes->starts);
}
