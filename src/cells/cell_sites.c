/* SPDX-License-Identifier: MIT */
#include "cells/cell_sites.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "cells/cell_lumps.h"

/* Frames by which lumped sites are told apart, at first: hardly any function that asked lies deeper. */
enum { DEPTH_FIRST = 16, ROUNDS_MOST = 6 };

/* ---- intervals ---- */

/* Numbers of intervals follow their moments: a sum, or the most. */
static void numbers_merge(uint64_t *numbers, const uint32_t *moments, uint32_t count, bool is_sum)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t to = moments[i + 1] - 1;
		uint64_t before = moments[i] == to + 1 ? numbers[to] : 0;
		numbers[to] = is_sum ? before + numbers[i] : numbers[i] > before ? numbers[i] : before;
	}
}

/* Merge the bounds alone. */
static bool bounds_merge(struct cell_bounds *bounds, uint32_t *moments, uint32_t *peak)
{
	bool *is_kept = memory_zeroed(bounds->count, sizeof(*is_kept));
	if (*peak != CELL_NO_BOUND)
		is_kept[*peak] = true;
	bool is_merged = cell_bounds_merge(bounds, is_kept, moments);
	*peak = *peak == CELL_NO_BOUND ? CELL_NO_BOUND : moments[*peak];
	free(is_kept);
	return is_merged;
}

bool cell_sites_merge(struct cell_sites *base, uint32_t *peak)
{
	uint32_t count = base->bounds.count, *moments = memory_zeroed((size_t)count + 1, sizeof(*moments));
	struct cell_set set = {.cells = NULL};
	bool is_merged = bounds_merge(&base->bounds, moments, peak);
	cell_set_add_changed(&set, &base->found.set, &(struct cell_change){NULL, moments}, UINT32_MAX);
	cell_set_fini(&base->found.set);
	base->found.set = set;
	numbers_merge(base->found.calls, moments, count - 1, true);
	numbers_merge(base->found.max_bytes, moments, count - 1, false);
	free(moments);
	return is_merged;
}

/* ---- all of it ---- */

/* A pass with the sites that stand for others. */
static void sites_scan(struct cell_sites *base, const struct heap_table *table, const struct heap_filter *filter,
		       const bool *sites, const struct cell_lumps *lumps, uint32_t most)
{
	const struct cell_scan scan = {.table = table,
				       .filter = filter,
				       .bounds = &base->bounds,
				       .nodes = lumps->sites,
				       .sites = sites,
				       .most = most};
	cell_scan_result_fini(&base->found);
	cell_scan(&scan, &base->found);
}

/* Lump more than in the round before; once all is lumped, merge intervals. Return false if nothing can be done. */
static bool cells_lessen(struct cell_sites *base, const struct heap_table *table, const struct heap_filter *filter,
			 struct cell_lumps *lumps, unsigned round, uint32_t *peak)
{
	const struct cell_bounds *bounds = &base->bounds;
	struct heap_range range = {bounds->times[0] + 1, bounds->times[bounds->count - 1]};
	uint64_t budget = round < ROUNDS_MOST ? base->found.set.count >> (round + 2) : 0;
	unsigned depth = DEPTH_FIRST >> round;
	if (round > ROUNDS_MOST) {
		uint32_t *moments = memory_zeroed((size_t)bounds->count + 1, sizeof(*moments));
		bool is_merged = bounds_merge(&base->bounds, moments, peak);
		free(moments);
		return is_merged;
	}
	/* Sites that stand for others have all of their cells. */
	struct cell_lumps more;
	cell_lumps_choose(&more, table, filter, range, &base->found.set, budget, depth ? depth : 1);
	cell_lumps_fini(lumps);
	*lumps = more;
	return true;
}

int cell_sites_make(struct cell_sites *base, const struct heap_table *table, const struct heap_filter *filter,
		    const bool *sites, uint32_t most, uint32_t *peak, struct diag *diag)
{
	struct cell_lumps lumps = {.sites = memory_zeroed(table->site_count, sizeof(uint32_t)),
				   .lumped = memory_zeroed(table->site_count, sizeof(uint32_t))};
	bool is_possible = true;
	for (uint32_t i = 0; i < table->site_count; i++)
		lumps.sites[i] = i;
	sites_scan(base, table, filter, sites, &lumps, most);
	for (unsigned round = 0; is_possible && base->found.is_over && !cancel_is_asked(filter->is_cancelled);
	     round++) {
		is_possible = cells_lessen(base, table, filter, &lumps, round, peak);
		sites_scan(base, table, filter, sites, &lumps, most);
	}
	base->lumped = lumps.lumped;
	free(lumps.sites);
	if (cancel_is_asked(filter->is_cancelled))
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	if (base->found.is_over)
		return diag_fail(diag, E2BIG, "this range has more than %u cells; choose a part of it", most);
	return 0;
}

void cell_sites_fini(struct cell_sites *base)
{
	cell_bounds_fini(&base->bounds);
	cell_scan_result_fini(&base->found);
	free(base->lumped);
	*base = (struct cell_sites){.lumped = NULL};
}
