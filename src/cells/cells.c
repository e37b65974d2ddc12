/* SPDX-License-Identifier: MIT */
#include "cells/cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "cells/cell_bytes.h"
#include "cells/cell_below.h"
#include "cells/cell_resident.h"
#include "cells/cell_scan.h"
#include "query/folded.h"
#include "query/peak.h"
#include "trace/trace.h"

/* An answer under construction. */
struct cells_making {
	const struct cells_source *source;
	const struct cells_request *request;
	struct cell_bounds bounds;
	uint32_t peak;   /* a bound */
	uint32_t *nodes; /* by site: node of the names */
	bool *sites;     /* by site: whether it is asked for; NULL: all are */
	struct cell_scan_result found;
	struct cell_paths paths;
	struct cell_tree tree;
	struct cell_set set; /* of the answer */
};

static const bool *cancelled_by(const struct cells_making *making)
{
	return making->source->filter->is_cancelled;
}

/* ---- times ---- */

/* The peak of the whole run, of all stacks. Of sums in place of blocks nobody knows what was live then: no bytes. */
static struct heap_peak peak_find(const struct cells_source *source)
{
	const struct heap_table *table = source->table;
	struct heap_range all = {0, table->duration_ns};
	struct heap_peak peak;
	int64_t from_ns;
	bool is_folded;
	if (!heap_folded_peak(&peak, table, source->filter, all, &from_ns, &is_folded))
		heap_peaks(&peak, 1, table, source->filter, (struct heap_range){from_ns, all.to_ns});
	return heap_is_folded(table) ? (struct heap_peak){0, 0} : peak;
}

static int bounds_make(struct cells_making *making, struct diag *diag)
{
	const struct cells_request *request = making->request;
	int64_t last_ns = making->source->table->duration_ns > 0 ? making->source->table->duration_ns : 0,
		from_ns = request->has_range && request->from_ns > -1 ? request->from_ns : -1,
		to_ns = request->has_range && request->to_ns < last_ns ? request->to_ns : last_ns;
	uint32_t intervals = request->interval_count ? request->interval_count : CELLS_INTERVALS_USUAL;
	int64_t wanted[CELLS_BOUNDS_MAX + 1];
	unsigned count = request->bound_count < CELLS_BOUNDS_MAX ? request->bound_count : CELLS_BOUNDS_MAX;
	if (from_ns >= to_ns)
		return diag_fail(diag, EINVAL, "this range has no time of the trace");
	memcpy(wanted, request->bounds, count * sizeof(*wanted));
	struct heap_peak peak = peak_find(making->source);
	if (peak.bytes)
		wanted[count++] = peak.time_ns;
	intervals = intervals < CELLS_INTERVALS_MAX ? intervals : CELLS_INTERVALS_MAX;
	cell_bounds_make(&making->bounds, from_ns, to_ns, intervals, wanted, count);
	making->peak = peak.bytes ? cell_bounds_find(&making->bounds, peak.time_ns) : CELL_NO_BOUND;
	return 0;
}

/* ---- stacks ---- */

static void stacks_name(struct cells_making *making)
{
	const struct cells_source *source = making->source;
	const struct heap_table *table = source->table;
	const struct wrapper_source wrapper = {table, source->names};
	wrapper_source_name(&wrapper);
	if (source->cull)
		heap_cull_prepare(source->cull, &wrapper, 1);
	making->nodes = memory_zeroed(table->site_count, sizeof(*making->nodes));
	for (uint32_t i = 0; i < table->site_count && !cancel_is_asked(cancelled_by(making)); i++)
		making->nodes[i] = heap_names_site(source->names, &table->sites[i]);
	heap_names_shorten(source->names);
}

/* ---- what fits ---- */

/* Make the tree with as many paths as an answer has room for, up to `most`. If there is room for none, the functions of
   the lightest are lost. Return how many paths it keeps. */
static uint32_t tree_fit(struct cells_making *making, uint32_t most)
{
	const struct cell_paths *paths = &making->paths;
	uint32_t kept = most, fits = 0, never = most + 1, named = paths->count;
	for (;;) {
		cell_tree_fini(&making->tree);
		cell_tree_make(&making->tree, paths, kept, named, making->source->names);
		bool is_fit = making->tree.count <= CELLS_NODES_MAX;
		if (is_fit && kept + 1 >= never)
			return kept;
		if (!is_fit && !kept) {
			named /= 2;
			continue;
		}
		fits = is_fit ? kept : fits;
		never = is_fit ? never : kept;
		kept = fits + (never - fits) / 2;
	}
}

/* Bring the cells into the answer's tree. Return false if there are too many. */
static bool cells_fit(struct cells_making *making)
{
	const struct cell_change change = {making->tree.of_path, NULL};
	cell_set_fini(&making->set);
	return cell_set_add_changed(&making->set, &making->found.set, &change, CELLS_MAX);
}

/* How many of the heaviest paths have so many cells. */
static uint32_t paths_with(const struct cell_paths *paths, uint64_t cells)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < paths->count; i++)
		if ((sum += paths->cell_count[i]) > cells)
			return i;
	return paths->count;
}

/* Lump the lightest paths until all fits, or none is left. */
static bool paths_fit(struct cells_making *making)
{
	uint32_t kept = tree_fit(making, making->paths.count);
	for (uint64_t cells = CELLS_MAX; !cells_fit(making); cells = cells / 4 * 3) {
		if (!kept)
			return false;
		uint32_t fewer = cells > CELLS_MAX / 64 ? paths_with(&making->paths, cells) : 0;
		kept = tree_fit(making, fewer < kept ? fewer : kept);
	}
	return true;
}

/* Numbers of intervals follow their moments: a sum, or the most. */
static void numbers_merge(uint64_t *numbers, const uint32_t *moments, uint32_t count, bool is_sum)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t to = moments[i + 1] - 1;
		uint64_t before = i && moments[i] == to + 1 ? numbers[to] : 0;
		numbers[to] = is_sum ? before + numbers[i] : numbers[i] > before ? numbers[i] : before;
	}
}

/* Merge intervals in pairs: times are coarser then, and all sums exact as before. Return false if there is one only. */
static bool intervals_merge(struct cells_making *making)
{
	uint32_t count = making->bounds.count;
	uint32_t *moments = memory_zeroed((size_t)count + 1, sizeof(*moments));
	bool *is_kept = memory_zeroed(count, sizeof(*is_kept));
	struct cell_set set = {.cells = NULL};
	if (making->peak != CELL_NO_BOUND)
		is_kept[making->peak] = true;
	bool is_merged = cell_bounds_merge(&making->bounds, is_kept, moments);
	cell_set_add_changed(&set, &making->found.set, &(struct cell_change){NULL, moments}, UINT32_MAX);
	cell_set_fini(&making->found.set);
	making->found.set = set;
	numbers_merge(making->found.calls, moments, count - 1, true);
	numbers_merge(making->found.max_bytes, moments, count - 1, false);
	making->peak = making->peak == CELL_NO_BOUND ? CELL_NO_BOUND : moments[making->peak];
	free(moments);
	free(is_kept);
	return is_merged;
}

/* Lump paths; if that is not enough, merge intervals. */
static bool answer_fit(struct cells_making *making)
{
	const struct cells_source *source = making->source;
	do {
		uint32_t moment = making->peak == CELL_NO_BOUND ? making->bounds.count - 1 : making->peak;
		cell_paths_fini(&making->paths);
		cell_paths_find(&making->paths, &making->found.set, moment, source->names, source->cull);
		if (paths_fit(making))
			return true;
	} while (!cancel_is_asked(cancelled_by(making)) && intervals_merge(making));
	return false;
}

/* ---- the answer ---- */

static uint64_t lumped_bytes(const struct cells_making *making)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < making->found.set.count; i++) {
		const struct cell_keys keys = cell_keys_of(&making->found.set.cells[i]);
		if (keys.birth && making->tree.is_lumped[keys.node])
			bytes += making->found.set.cells[i].sums.bytes;
	}
	return bytes;
}

static void answer_write(struct cells_making *making, struct sink *out)
{
	const struct trace_dictionary *dictionary = making->source->table->dictionary;
	uint64_t *resident = cell_resident_find(dictionary, &making->bounds);
	cell_set_sort(&making->set);
	const struct cell_answer answer = {.is_whole = !making->request->has_range,
					   .bounds = &making->bounds,
					   .peak = making->peak,
					   .set = &making->set,
					   .tree = &making->tree,
					   .names = making->source->names,
					   .heap_count = dictionary->heap_count,
					   .calls = making->found.calls,
					   .max_bytes = making->found.max_bytes,
					   .resident = resident,
					   .lumped_bytes = lumped_bytes(making)};
	cell_answer_write(&answer, out);
	free(resident);
}

static int cells_find(struct cells_making *making, struct diag *diag)
{
	const struct cells_source *source = making->source;
	const struct cell_scan scan = {.table = source->table,
				       .filter = source->filter,
				       .bounds = &making->bounds,
				       .nodes = making->nodes,
				       .sites = making->sites,
				       .most = CELLS_SCANNED_MAX};
	cell_scan(&scan, &making->found);
	if (cancel_is_asked(cancelled_by(making)))
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	if (making->found.is_over)
		return diag_fail(diag, E2BIG, "this range has more than %d cells; choose a part of it",
				 CELLS_SCANNED_MAX);
	return answer_fit(making)
		       ? 0
		       : diag_fail(diag, E2BIG, "this range has more than %d cells; choose a part of it", CELLS_MAX);
}

static void making_fini(struct cells_making *making)
{
	cell_bounds_fini(&making->bounds);
	cell_scan_result_fini(&making->found);
	cell_paths_fini(&making->paths);
	cell_tree_fini(&making->tree);
	cell_set_fini(&making->set);
	free(making->nodes);
	free(making->sites);
}

int cells_write(struct sink *out, const struct cells_source *source, const struct cells_request *request,
		struct diag *diag)
{
	struct cells_making making = {.source = source, .request = request};
	const struct heap_range all = {0, source->table->duration_ns};
	int error = heap_folded_check(source->table, source->filter, all, HEAP_BY_NONE, diag);
	error = error ? error : bounds_make(&making, diag);
	if (!error)
		stacks_name(&making);
	if (!error && request->node && *request->node) {
		making.sites = cell_below_find(source->table, source->names, making.nodes, request->node);
		if (!making.sites)
			error = diag_fail(diag, ENOENT, "no stack of the trace begins with these frames");
	}
	error = error ? error : cells_find(&making, diag);
	if (!error)
		answer_write(&making, out);
	making_fini(&making);
	return error;
}
