/* SPDX-License-Identifier: MIT */
#include "cells/cells.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "cells/cell_bytes.h"
#include "cells/cell_below.h"
#include "cells/cell_peak.h"
#include "cells/cell_resident.h"
#include "cells/cell_scan.h"
#include "cells/growing_cells.h"
#include "query/folded.h"
#include "trace/trace.h"

enum {
	SCANNED_MAX = 500000, /* cells of a pass; of more, a sample is taken, or classes are lost */
	SAMPLE_MAX = 1 << 17  /* cells with which trees are tried */
};

/* An answer under construction. */
struct cells_making {
	const struct cells_source *source;
	const struct cells_request *request;
	struct cell_bounds bounds;
	const struct fine_cells *fine; /* the bounds lie among theirs; NULL: anywhere */
	uint32_t peak;                 /* a bound */
	bool *sites;                   /* by site: whether it is asked for; NULL: all are */
	const uint32_t *nodes;         /* by site: a node of the names */
	uint32_t *own_nodes;           /* if they are made for this answer */
	struct cell_scan_result found; /* with these nodes; a sample if there are many cells */
	struct cell_paths paths;
	struct cell_kept kept; /* in the tree */
	struct cell_tree tree;
	struct cell_set set; /* of the answer */
};

static const bool *cancelled_by(const struct cells_making *making)
{
	return making->source->filter->is_cancelled;
}

/* ---- times ---- */

static int bounds_make(struct cells_making *making, uint32_t intervals, struct diag *diag)
{
	const struct cells_request *request = making->request;
	int64_t last_ns = making->source->table->duration_ns > 0 ? making->source->table->duration_ns : 0,
		from_ns = request->has_range && request->from_ns > -1 ? request->from_ns : -1,
		to_ns = request->has_range && request->to_ns < last_ns ? request->to_ns : last_ns;
	int64_t wanted[CELLS_BOUNDS_MAX + 1];
	unsigned count = request->bound_count < CELLS_BOUNDS_MAX ? request->bound_count : CELLS_BOUNDS_MAX;
	if (from_ns >= to_ns)
		return diag_fail(diag, EINVAL, "this range has no time of the trace");
	memcpy(wanted, request->bounds, count * sizeof(*wanted));
	struct heap_peak peak = cell_peak_find(making->source->table, making->source->filter);
	if (peak.bytes)
		wanted[count++] = peak.time_ns;
	const struct fine_cells *fine = making->source->fine;
	bool is_fine = fine && !making->sites && fine_cells_pass(making->source->filter) &&
		       fine_cells_bounds(fine, &making->bounds, from_ns, to_ns, intervals, wanted, count);
	making->fine = is_fine ? fine : NULL;
	if (!is_fine)
		cell_bounds_make(&making->bounds, from_ns, to_ns, intervals, wanted, count);
	making->peak = peak.bytes ? cell_bounds_find(&making->bounds, peak.time_ns) : CELL_NO_BOUND;
	return 0;
}

/* ---- stacks ---- */

uint32_t *cells_name_sites(const struct cells_source *source)
{
	const struct heap_table *table = source->table;
	const bool *is_cancelled = source->filter->is_cancelled;
	const struct wrapper_source wrapper = {table, source->names};
	uint32_t *nodes = memory_zeroed((size_t)table->site_count + 1, sizeof(*nodes));
	wrapper_source_name(&wrapper);
	for (uint32_t i = 0; i < table->site_count && !cancel_is_asked(is_cancelled); i++)
		nodes[i] = heap_names_site(source->names, &table->sites[i]);
	heap_names_shorten(source->names);
	if (!cancel_is_asked(is_cancelled))
		return nodes;
	free(nodes);
	return NULL;
}

static int stacks_name(struct cells_making *making, struct diag *diag)
{
	const struct cells_source *source = making->source;
	const struct wrapper_source wrapper = {source->table, source->names};
	if (source->cull)
		heap_cull_prepare(source->cull, &wrapper, 1);
	making->nodes = source->nodes ? source->nodes : (making->own_nodes = cells_name_sites(source));
	return making->nodes ? 0 : diag_fail(diag, ECANCELED, "the question was cancelled");
}

/* ---- what fits ---- */

/* What is chosen, in this order, and the part of the room that it may take with all before it, in percent. */
static const struct choice {
	size_t offset; /* in struct cell_kept */
	unsigned percent;
} choices[] = {{offsetof(struct cell_kept, functions), 35},
	       {offsetof(struct cell_kept, paths), 70},
	       {offsetof(struct cell_kept, levels), 80},
	       {offsetof(struct cell_kept, classed), 95}};

static void tree_make(struct cells_making *making)
{
	cell_tree_make(&making->tree, &making->paths, &making->kept);
}

/* Cells with which trees are tried: a sample has the same part of all that any tree would have. */
struct cells_sample {
	struct cell_set set;
	double scale;         /* cells of all for each of the sample */
	struct cell_set made; /* of the last tree */
};

/* Some cells have many blocks, so a sample may have too many of them, or too few. Its share of the blocks tells, but
   too loudly: the mean of that and of the level is nearer than either. */
static double scale_of(const struct cells_making *making, const struct cell_set *sample, unsigned level)
{
	double all = 0, own = 0;
	for (uint32_t i = 0; i < making->paths.node_count; i++)
		all += (double)making->found.weights[i].blocks;
	for (uint32_t i = 0; i < sample->count; i++)
		own += (double)sample->cells[i].sums.blocks;
	return ((double)(UINT64_C(1) << level) + (own > 0 ? all / own : 1)) / 2;
}

/* Make the tree. Return whether there is room for it, and for its cells. */
static bool is_fit(struct cells_making *making, struct cells_sample *sample, unsigned percent)
{
	tree_make(making);
	cell_set_clear(&sample->made);
	const struct cell_change change = {making->tree.of_path, making->tree.is_plain};
	return making->tree.count <= CELLS_NODES_MAX / 100 * percent &&
	       cell_set_add_changed(&sample->made, &sample->set, &change,
				    (uint32_t)(CELLS_MAX / 100 * percent / sample->scale));
}

/* Find the most that fits of what is chosen, up to `most`. */
static void choice_make(struct cells_making *making, const struct choice *choice, struct cells_sample *sample,
			uint32_t most)
{
	enum { CLOSE = 16 /* an answer that lacks one in so many will do */ };
	uint32_t *number = (uint32_t *)((char *)&making->kept + choice->offset), fits = 0, never = most + 1;
	for (*number = most; never - fits > fits / CLOSE + 1 && !cancel_is_asked(cancelled_by(making));) {
		*(is_fit(making, sample, choice->percent) ? &fits : &never) = *number;
		*number = fits + (never - fits) / 2;
	}
	*number = fits;
}

/* Keep all, or the heaviest functions, then paths, then places of lumps, then classes. */
static void tree_choose(struct cells_making *making)
{
	const struct cell_paths *paths = &making->paths;
	uint32_t room = paths->count < CELLS_NODES_MAX ? paths->count : CELLS_NODES_MAX;
	const uint32_t most[] = {paths->functions, room, CELL_LEVELS, paths->count};
	making->kept = (struct cell_kept){paths->functions, paths->count, CELL_LEVELS, paths->count};
	unsigned level = making->found.level;
	struct cells_sample sample = {.set = making->found.set, .scale = (double)(UINT64_C(1) << level)};
	bool is_all = is_fit(making, &sample, 100);
	sample.set = (struct cell_set){.cells = NULL};
	if (!is_all) {
		making->kept = (struct cell_kept){.functions = 0};
		for (uint32_t left = making->found.set.count; left > SAMPLE_MAX; left /= 2)
			level++;
		cell_set_add_sample(&sample.set, &making->found.set, level);
		sample.scale = scale_of(making, &sample.set, level);
		for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
			choice_make(making, &choices[i], &sample, most[i]);
		tree_make(making);
	}
	cell_set_fini(&sample.set);
	cell_set_fini(&sample.made);
}

/* Take cells that are in the tree. If there are too many, more of them lose their classes. */
static bool cells_thin(struct cells_making *making, struct cell_set *cells)
{
	struct cell_kept *kept = &making->kept;
	if (cells->count <= CELLS_MAX) {
		making->set = *cells;
		*cells = (struct cell_set){.cells = NULL};
		return true;
	}
	uint32_t *same = memory_zeroed(making->tree.count, sizeof(*same));
	bool *is_plain = memory_zeroed(making->tree.count, sizeof(*is_plain)), is_fit = false;
	const struct cell_change change = {same, is_plain};
	for (uint32_t i = 0; i < making->tree.count; i++)
		same[i] = i;
	while (!is_fit && kept->classed) {
		kept->classed /= 2;
		tree_make(making);
		cell_tree_spread_plain(&making->tree, &making->paths, is_plain);
		cell_set_clear(&making->set);
		is_fit = cell_set_add_changed(&making->set, cells, &change, CELLS_MAX);
	}
	free(same);
	free(is_plain);
	return is_fit;
}

/* Bring the cells into the tree: those that were found, or, of a sample, by another pass. */
static bool cells_take(struct cells_making *making)
{
	const struct heap_table *table = making->source->table;
	const struct cell_change change = {making->tree.of_path, making->tree.is_plain};
	cell_set_fini(&making->set);
	if (!making->found.level)
		return cell_set_add_changed(&making->set, &making->found.set, &change, CELLS_MAX);
	uint32_t *nodes = memory_zeroed(table->site_count, sizeof(*nodes));
	bool *is_plain = memory_zeroed(table->site_count, sizeof(*is_plain));
	for (uint32_t i = 0; i < table->site_count; i++) {
		nodes[i] = change.nodes[making->nodes[i]];
		is_plain[i] = change.is_plain[making->nodes[i]];
	}
	const struct cell_scan scan = {.table = table,
				       .filter = making->source->filter,
				       .bounds = &making->bounds,
				       .nodes = nodes,
				       .is_plain = is_plain,
				       .sites = making->sites,
				       .fine = making->fine,
				       .most = SCANNED_MAX};
	struct cell_scan_result result;
	cell_scan(&scan, &result);
	bool is_fit = !result.is_over && cells_thin(making, &result.set);
	cell_scan_result_fini(&result);
	free(nodes);
	free(is_plain);
	return is_fit;
}

/* A sample may have promised too much. Return false if even what has neither path nor classes is too much. */
static bool cells_fit(struct cells_making *making)
{
	struct cell_kept *kept = &making->kept;
	tree_choose(making);
	while (!cells_take(making)) {
		if (cancel_is_asked(cancelled_by(making)) || (!kept->functions && !kept->paths))
			return false;
		*kept = (struct cell_kept){kept->functions * 3 / 4, kept->paths * 3 / 4, kept->levels / 2,
					   kept->classed / 2};
		tree_make(making);
	}
	return true;
}

/* ---- the answer ---- */

/* What was made by paths that are so. */
static uint64_t bytes_of(const struct cells_making *making, const bool *is_so)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < making->paths.count; i++)
		bytes += is_so[making->paths.items[i].node] ? making->paths.items[i].made_bytes : 0;
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
					   .lumped_bytes = bytes_of(making, making->tree.is_lumped),
					   .plain_bytes = bytes_of(making, making->tree.is_plain)};
	cell_answer_write(&answer, out);
	free(resident);
}

/* Take the cells that are kept while a trace grows. */
static void growing_take(struct cells_making *making)
{
	const struct cells_source *source = making->source;
	struct cell_scan_result *found = &making->found;
	growing_cells_take(source->growing, source->table->duration_ns, making->nodes,
			   heap_names_node_count(source->names), &making->bounds, found);
	uint32_t intervals = making->bounds.count - 1;
	found->max_bytes = memory_zeroed(intervals, sizeof(*found->max_bytes));
	memcpy(found->max_bytes, source->growing_max_bytes, intervals * sizeof(*found->max_bytes));
	making->peak = CELL_NO_BOUND;
}

/* Look for cells with bounds that are so many. */
static int cells_scan(struct cells_making *making, uint32_t intervals, struct diag *diag)
{
	const struct cells_source *source = making->source;
	int error = bounds_make(making, intervals, diag);
	if (error)
		return error;
	const struct cell_scan scan = {.table = source->table,
				       .filter = source->filter,
				       .bounds = &making->bounds,
				       .nodes = making->nodes,
				       .sites = making->sites,
				       .fine = making->fine,
				       .most = SCANNED_MAX,
				       .sample_most = SAMPLE_MAX,
				       .node_count = heap_names_node_count(source->names),
				       .moment =
					       making->peak == CELL_NO_BOUND ? making->bounds.count - 1 : making->peak};
	cell_scan(&scan, &making->found);
	return 0;
}

/* Look for cells. *is_fit: there are not too many. */
static int cells_look(struct cells_making *making, uint32_t intervals, bool *is_fit, struct diag *diag)
{
	const struct cells_source *source = making->source;
	int error = source->growing ? 0 : cells_scan(making, intervals, diag);
	if (error)
		return error;
	if (source->growing)
		growing_take(making);
	if (cancel_is_asked(cancelled_by(making)))
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	cell_paths_find(&making->paths, making->found.weights, source->names, source->cull);
	*is_fit = !making->found.is_over && cells_fit(making);
	return 0;
}

/* What was found, which may be looked for again. */
static void found_fini(struct cells_making *making)
{
	cell_bounds_fini(&making->bounds);
	cell_scan_result_fini(&making->found);
	cell_paths_fini(&making->paths);
	cell_tree_fini(&making->tree);
	cell_set_fini(&making->set);
}

/* If there is no room even without any stack, intervals are fewer. */
static int cells_find(struct cells_making *making, struct diag *diag)
{
	uint32_t intervals = making->request->interval_count ? making->request->interval_count : CELLS_INTERVALS_USUAL;
	intervals = intervals < CELLS_INTERVALS_MAX ? intervals : CELLS_INTERVALS_MAX;
	for (bool is_fit = false; intervals; intervals /= 2) {
		int error = cells_look(making, intervals, &is_fit, diag);
		if (error || is_fit)
			return error;
		found_fini(making);
		if (cancel_is_asked(cancelled_by(making)))
			return diag_fail(diag, ECANCELED, "the question was cancelled");
		if (making->source->growing)
			break;
	}
	return diag_fail(diag, E2BIG, "this range has more than %d cells; choose a part of it", CELLS_MAX);
}

static void making_fini(struct cells_making *making)
{
	found_fini(making);
	free(making->own_nodes);
	free(making->sites);
}

int cells_write(struct sink *out, const struct cells_source *source, const struct cells_request *request,
		struct diag *diag)
{
	struct cells_making making = {.source = source, .request = request};
	const struct heap_range all = {0, source->table->duration_ns};
	int error = heap_folded_check(source->table, source->filter, all, HEAP_BY_NONE, diag);
	error = error ? error : stacks_name(&making, diag);
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
