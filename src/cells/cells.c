/* SPDX-License-Identifier: MIT */
#include "cells/cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "cells/cell_bytes.h"
#include "cells/cell_below.h"
#include "cells/cell_index.h"
#include "cells/cell_peak.h"
#include "cells/cell_resident.h"
#include "cells/cell_sites.h"
#include "query/folded.h"
#include "trace/trace.h"

enum { LUMPED_SHARE = 10 /* a part of what was made that may be lumped: one in so many */, TRIES = 4 };

/* An answer under construction. */
struct cells_making {
	const struct cells_source *source;
	const struct cells_request *request;
	struct cell_sites base;
	uint32_t peak;   /* a bound */
	bool *sites;     /* by site: whether it is asked for; NULL: all are */
	uint32_t *nodes; /* by site: a node of the names; behind all of those: a lump */
	struct cell_lump *lumps;
	uint32_t lump_count;
	struct cell_set by_node; /* with these nodes */
	struct cell_paths paths;
	struct cell_tree tree;
	struct cell_set set; /* of the answer */
};

static const bool *cancelled_by(const struct cells_making *making)
{
	return making->source->filter->is_cancelled;
}

/* ---- times ---- */

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
	struct heap_peak peak = cell_peak_find(making->source->table, making->source->filter);
	if (peak.bytes)
		wanted[count++] = peak.time_ns;
	intervals = intervals < CELLS_INTERVALS_MAX ? intervals : CELLS_INTERVALS_MAX;
	cell_bounds_make(&making->base.bounds, from_ns, to_ns, intervals, wanted, count);
	making->peak = peak.bytes ? cell_bounds_find(&making->base.bounds, peak.time_ns) : CELL_NO_BOUND;
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

/* What was lumped without names is a path behind all nodes of the names. */
static void lumps_find(struct cells_making *making)
{
	const struct heap_table *table = making->source->table;
	uint32_t nodes = heap_names_node_count(making->source->names);
	making->lumps = memory_zeroed(table->site_count, sizeof(*making->lumps));
	for (uint32_t i = 0; i < table->site_count; i++) {
		if (!making->base.lumped[i])
			continue;
		making->lumps[making->lump_count] = (struct cell_lump){making->nodes[i], making->base.lumped[i]};
		making->nodes[i] = nodes + making->lump_count++;
	}
}

/* ---- what fits ---- */

/* Make the tree of up to `most` paths, as many as an answer has nodes for. If there is room for none, the functions of
   the lightest are lost. Return how many paths it keeps. */
static uint32_t tree_fit(struct cells_making *making, uint32_t most)
{
	uint32_t kept = most, fits = 0, never = most + 1, with_function = making->paths.count;
	for (;;) {
		cell_tree_fini(&making->tree);
		cell_tree_make(&making->tree, &making->paths, kept, with_function, making->source->names);
		bool is_fit = making->tree.count <= CELLS_NODES_MAX;
		if (is_fit && kept + 1 >= never)
			return kept;
		if (!is_fit && !kept) {
			with_function /= 2;
			continue;
		}
		fits = is_fit ? kept : fits;
		never = is_fit ? never : kept;
		kept = fits + (never - fits) / 2;
	}
}

/* Bring the cells into the answer's tree. Return false if there are more than `most`. */
static bool cells_fit(struct cells_making *making, uint32_t most)
{
	const struct cell_change change = {making->tree.of_path, NULL};
	cell_set_fini(&making->set);
	return cell_set_add_changed(&making->set, &making->by_node, &change, most);
}

/* How many paths have to be kept so that little is lumped. */
static uint32_t paths_least(const struct cell_paths *paths)
{
	uint64_t all = 0, lumped = 0;
	uint32_t kept = paths->count;
	for (uint32_t i = 0; i < paths->count; i++)
		all += paths->bytes[i];
	while (kept && lumped + paths->bytes[kept - 1] <= all / LUMPED_SHARE)
		lumped += paths->bytes[--kept];
	return kept < paths->named ? kept : paths->named;
}

/* Between paths that fit and paths that do not, look for more that fit. */
static void paths_more(struct cells_making *making, uint32_t fits, uint32_t never)
{
	uint32_t kept = fits;
	for (unsigned i = 0; i < TRIES && never - fits > 1; i++) {
		kept = tree_fit(making, fits + (never - fits) / 2);
		bool is_fit = cells_fit(making, CELLS_USUAL);
		fits = is_fit ? kept : fits;
		never = is_fit ? never : kept;
	}
	if (kept == fits)
		return;
	tree_fit(making, fits);
	cells_fit(making, CELLS_USUAL);
}

/* Lump the lightest paths until all fits, or none is left. */
static bool paths_fit(struct cells_making *making)
{
	uint32_t most = tree_fit(making, making->paths.named);
	if (cells_fit(making, CELLS_USUAL))
		return true;
	uint32_t least = paths_least(&making->paths), kept = tree_fit(making, least < most ? least : most);
	if (cells_fit(making, CELLS_USUAL)) {
		paths_more(making, kept, most);
		return true;
	}
	while (!cells_fit(making, CELLS_MAX)) {
		if (!kept || cancel_is_asked(cancelled_by(making)))
			return false;
		kept = tree_fit(making, kept / 2);
	}
	return true;
}

/* Lump paths; if that is not enough, merge intervals. */
static bool answer_fit(struct cells_making *making)
{
	const struct cells_source *source = making->source;
	do {
		uint32_t moment = making->peak == CELL_NO_BOUND ? making->base.bounds.count - 1 : making->peak;
		cell_set_fini(&making->by_node);
		cell_set_add_changed(&making->by_node, &making->base.found.set,
				     &(struct cell_change){making->nodes, NULL}, UINT32_MAX);
		cell_paths_fini(&making->paths);
		cell_paths_find(&making->paths, &making->by_node, moment, source->names, source->cull, making->lumps,
				making->lump_count);
		if (paths_fit(making))
			return true;
	} while (!cancel_is_asked(cancelled_by(making)) && cell_sites_merge(&making->base, &making->peak));
	return false;
}

/* ---- the answer ---- */

static uint64_t lumped_bytes(const struct cells_making *making)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < making->by_node.count; i++) {
		const struct cell_keys keys = cell_keys_of(&making->by_node.cells[i]);
		if (keys.birth && making->tree.is_lumped[keys.node])
			bytes += making->by_node.cells[i].sums.bytes;
	}
	return bytes;
}

static void answer_write(struct cells_making *making, struct sink *out)
{
	const struct trace_dictionary *dictionary = making->source->table->dictionary;
	uint64_t *resident = cell_resident_find(dictionary, &making->base.bounds);
	cell_set_sort(&making->set);
	const struct cell_answer answer = {.is_whole = !making->request->has_range,
					   .bounds = &making->base.bounds,
					   .peak = making->peak,
					   .set = &making->set,
					   .tree = &making->tree,
					   .names = making->source->names,
					   .heap_count = dictionary->heap_count,
					   .calls = making->base.found.calls,
					   .max_bytes = making->base.found.max_bytes,
					   .resident = resident,
					   .lumped_bytes = lumped_bytes(making)};
	cell_answer_write(&answer, out);
	free(resident);
}

/* The whole run as it is usually asked for. */
static bool is_usual(const struct cells_making *making)
{
	const struct cells_request *request = making->request;
	bool is_usual_count = !request->interval_count || request->interval_count == CELLS_INTERVALS_USUAL;
	return !request->has_range && is_usual_count && !request->bound_count && !making->sites &&
	       cell_index_is_of(making->source->table, making->source->filter);
}

static int cells_take(struct cells_making *making, struct diag *diag)
{
	const struct cells_source *source = making->source;
	if (is_usual(making) && cell_index_read(&making->base, source->table, &making->peak))
		return 0;
	int error = bounds_make(making, diag);
	return error ? error
		     : cell_sites_make(&making->base, source->table, source->filter, making->sites, CELLS_SCANNED_MAX,
				       &making->peak, diag);
}

static int cells_find(struct cells_making *making, struct diag *diag)
{
	int error = cells_take(making, diag);
	if (error)
		return error;
	lumps_find(making);
	bool is_fit = answer_fit(making);
	if (cancel_is_asked(cancelled_by(making)))
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	return is_fit ? 0 : diag_fail(diag, E2BIG, "this range has more than %d cells; choose a part of it", CELLS_MAX);
}

static void making_fini(struct cells_making *making)
{
	cell_sites_fini(&making->base);
	cell_set_fini(&making->by_node);
	cell_paths_fini(&making->paths);
	cell_tree_fini(&making->tree);
	cell_set_fini(&making->set);
	free(making->nodes);
	free(making->lumps);
	free(making->sites);
}

int cells_write(struct sink *out, const struct cells_source *source, const struct cells_request *request,
		struct diag *diag)
{
	struct cells_making making = {.source = source, .request = request};
	const struct heap_range all = {0, source->table->duration_ns};
	int error = heap_folded_check(source->table, source->filter, all, HEAP_BY_NONE, diag);
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
