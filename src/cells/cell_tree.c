/* SPDX-License-Identifier: MIT */
#include "cells/cell_tree.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"

/* ---- paths ---- */

/* A path, or a function. */
struct cell_share {
	uint32_t number; /* a node, or the number of a name */
	struct cell_weights weights;
	double share;
};

static void weights_add(struct cell_weights *to, const struct cell_weights *from)
{
	to->made_bytes += from->made_bytes;
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->live_bytes += from->live_bytes;
	to->never_freed_bytes += from->never_freed_bytes;
}

/* Stacks that are one word are never lumped, as long as there is room for any path. */
static bool is_word(const struct heap_names *names, uint32_t node)
{
	const struct heap_frame *frame = heap_names_frame(names, node);
	return !node || (!frame->parent && heap_names_name(names, frame->name)->is_mark);
}

static double share_of(const struct cell_weights *own, const struct cell_weights *all)
{
	const double shares[] = {
		all->bytes ? (double)own->bytes / (double)all->bytes : 0,
		all->blocks ? (double)own->blocks / (double)all->blocks : 0,
		all->live_bytes ? (double)own->live_bytes / (double)all->live_bytes : 0,
		all->never_freed_bytes ? (double)own->never_freed_bytes / (double)all->never_freed_bytes : 0};
	double largest = 0;
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++)
		largest = shares[i] > largest ? shares[i] : largest;
	return largest;
}

static int share_compare(const void *a, const void *b)
{
	const struct cell_share *left = a, *right = b;
	if (left->share < right->share || left->share > right->share)
		return left->share > right->share ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

/* The function that asked, as a number below that of all names. */
static uint32_t function_of(const struct cell_paths *paths, const struct heap_names *names, uint32_t node)
{
	uint32_t asker = paths->askers[node];
	return asker ? heap_names_frame(names, asker)->name + 1 : 0;
}

/* Shares of nodes, with all that they call. */
static void levels_find(struct cell_paths *paths, const struct cell_weights *weights, const struct cell_weights *all)
{
	struct cell_weights *sums = memory_zeroed(paths->node_count, sizeof(*sums));
	for (uint32_t i = paths->all_count; i-- > 0;) {
		uint32_t node = paths->all[i].node;
		double share;
		weights_add(&sums[node], &weights[node]);
		weights_add(&sums[paths->all[i].parent], &sums[node]);
		for (share = share_of(&sums[node], all); paths->levels[node] < CELL_LEVELS && share < 1; share *= 2)
			paths->levels[node]++;
	}
	free(sums);
}

/* Nodes of paths, and of all that is around them. */
static void all_list(struct cell_paths *paths, const struct heap_names *names)
{
	bool *is_on = memory_zeroed(paths->node_count, sizeof(*is_on));
	for (uint32_t i = 0; i < paths->count; i++)
		is_on[paths->nodes[i]] = true;
	is_on[0] = false;
	for (uint32_t node = paths->node_count; node-- > 1;) {
		paths->all_count += is_on[node];
		if (is_on[node])
			is_on[heap_names_frame(names, node)->parent] = true;
	}
	paths->all = memory_zeroed(paths->all_count, sizeof(*paths->all));
	for (uint32_t node = 1, at = 0; node < paths->node_count; node++) {
		if (!is_on[node])
			continue;
		const struct heap_frame *frame = heap_names_frame(names, node);
		paths->all[at++] = (struct cell_path_node){node, frame->parent, frame->name};
	}
	free(is_on);
}

static void functions_rank(struct cell_paths *paths, const struct cell_share *items, const struct cell_weights *all,
			   const struct heap_names *names)
{
	uint32_t name_count = heap_names_count(names) + 1, *ranks = memory_zeroed(name_count, sizeof(*ranks));
	struct cell_share *functions = memory_zeroed(name_count, sizeof(*functions));
	for (uint32_t i = 0; i < name_count; i++)
		functions[i] = (struct cell_share){.number = i, .share = -1};
	for (uint32_t i = 0; i < paths->count; i++) {
		struct cell_share *function = &functions[function_of(paths, names, items[i].number)];
		weights_add(&function->weights, &items[i].weights);
		function->share = share_of(&function->weights, all);
	}
	for (uint32_t i = 0; i < paths->count && items[i].share > 1; i++)
		functions[function_of(paths, names, items[i].number)].share = items[i].share;
	qsort(functions, name_count, sizeof(*functions), share_compare);
	for (uint32_t i = 0; i < name_count; i++) {
		ranks[functions[i].number] = i;
		paths->functions += functions[i].share >= 0;
	}
	for (uint32_t i = 0; i < paths->count; i++)
		paths->ranks[paths->nodes[i]] = ranks[function_of(paths, names, paths->nodes[i])];
	free(functions);
	free(ranks);
}

void cell_paths_find(struct cell_paths *paths, const struct cell_weights *weights, struct heap_names *names,
		     struct heap_cull *cull)
{
	enum { WORD_SHARE = 2 /* above all others */ };
	uint32_t nodes = heap_names_node_count(names);
	struct cell_weights all = {.bytes = 0};
	struct cell_share *items = NULL;
	size_t capacity = 0;
	*paths = (struct cell_paths){.askers = memory_zeroed(nodes, sizeof(uint32_t)),
				     .ranks = memory_zeroed(nodes, sizeof(uint32_t)),
				     .levels = memory_zeroed(nodes, sizeof(uint8_t)),
				     .node_count = nodes};
	for (uint32_t node = 0; node < nodes; node++)
		weights_add(&all, &weights[node]);
	for (uint32_t node = 0; node < nodes; node++) {
		if (!weights[node].blocks)
			continue;
		memory_grow(items, paths->count, capacity);
		items[paths->count++] = (struct cell_share){
			node, weights[node], is_word(names, node) ? WORD_SHARE : share_of(&weights[node], &all)};
		paths->askers[node] = cull ? heap_cull_node(cull, names, node) : node;
	}
	if (paths->count)
		qsort(items, paths->count, sizeof(*items), share_compare);
	paths->nodes = memory_zeroed(paths->count, sizeof(uint32_t));
	paths->bytes = memory_zeroed(paths->count, sizeof(uint64_t));
	for (uint32_t i = 0; i < paths->count; i++) {
		paths->nodes[i] = items[i].number;
		paths->bytes[i] = items[i].weights.made_bytes;
	}
	all_list(paths, names);
	functions_rank(paths, items, &all, names);
	levels_find(paths, weights, &all);
	free(items);
}

void cell_paths_fini(struct cell_paths *paths)
{
	free(paths->nodes);
	free(paths->all);
	free(paths->bytes);
	free(paths->askers);
	free(paths->ranks);
	free(paths->levels);
	*paths = (struct cell_paths){.nodes = NULL};
}

/* ---- the tree ---- */

/* A tree under construction. */
struct tree_making {
	struct cell_tree *tree;
	const struct cell_paths *paths;
	const struct heap_names *names;
	uint32_t *places; /* by node of the names: its node in the tree plus 1, if it is on a kept path */
	uint32_t *above;  /* likewise: the place of the last frame under which others may be lumped, itself included */
	struct map lumps; /* a node of the tree plus 1, or 0, and a name: the lump under it */
};

static uint32_t node_add(struct cell_tree *tree, uint32_t parent, uint32_t frame, uint32_t name)
{
	memory_grow(tree->nodes, tree->count, tree->capacity);
	tree->nodes[tree->count] =
		(struct cell_node){.parent = parent, .frame = frame, .name = name, .asker = tree->count};
	return tree->count++;
}

/* All nodes of kept paths; node 0 has a place only as a path. */
static void kept_add(struct tree_making *making, const struct cell_kept *kept)
{
	const struct cell_paths *paths = making->paths;
	for (uint32_t i = 0; i < kept->paths; i++)
		if (paths->ranks[paths->nodes[i]] < kept->functions)
			making->places[paths->nodes[i]] = 1;
	for (uint32_t i = paths->all_count; i-- > 0;)
		if (making->places[paths->all[i].node] && paths->all[i].parent)
			making->places[paths->all[i].parent] = 1;
	if (making->places[0])
		making->places[0] = node_add(making->tree, 0, HEAP_NONE, CELL_NO_STACK) + 1;
	for (uint32_t i = 0; i < paths->all_count; i++) {
		const struct cell_path_node *at = &paths->all[i];
		making->above[at->node] = making->above[at->parent];
		if (!making->places[at->node])
			continue;
		uint32_t parent = at->parent ? making->places[at->parent] : 0;
		making->places[at->node] = node_add(making->tree, parent, at->node, at->name) + 1;
		if (paths->levels[at->node] <= kept->levels)
			making->above[at->node] = making->places[at->node];
	}
}

/* The lump of this name below a place, made if it is new. */
static uint32_t lump_below(struct tree_making *making, uint32_t place, uint32_t name)
{
	bool added;
	uint32_t *lump = map_add(&making->lumps, map_pair(place, name), &added);
	return added ? (*lump = node_add(making->tree, place, HEAP_NONE, name)) : *lump;
}

/* Lump a path. */
static uint32_t path_lump(struct tree_making *making, uint32_t path, bool has_function)
{
	uint32_t lump = lump_below(making, making->above[path], CELL_SMALLER_STACKS),
		 asker = making->paths->askers[path];
	making->tree->nodes[lump].stacks++;
	making->tree->lumped_stacks++;
	making->tree->is_lumped[path] = true;
	if (!has_function)
		return lump;
	uint32_t name = asker ? heap_names_frame(making->names, asker)->name : CELL_NO_STACK;
	lump = lump_below(making, lump + 1, name);
	making->tree->nodes[lump].stacks++;
	return lump;
}

void cell_tree_make(struct cell_tree *tree, const struct cell_paths *paths, const struct cell_kept *kept,
		    const struct heap_names *names)
{
	if (!tree->of_path) {
		tree->of_path = memory_zeroed(paths->node_count, sizeof(uint32_t));
		tree->is_lumped = memory_zeroed(paths->node_count, sizeof(bool));
		tree->is_plain = memory_zeroed(paths->node_count, sizeof(bool));
		tree->places = memory_zeroed(paths->node_count, sizeof(uint32_t));
		tree->above = memory_zeroed(paths->node_count, sizeof(uint32_t));
	}
	struct tree_making making = {
		.tree = tree, .paths = paths, .names = names, .places = tree->places, .above = tree->above};
	tree->count = tree->lumped_stacks = 0;
	tree->lumped_functions = paths->functions - kept->functions;
	making.places[0] = 0;
	for (uint32_t i = 0; i < paths->all_count; i++)
		making.places[paths->all[i].node] = 0;
	kept_add(&making, kept);
	for (uint32_t i = 0; i < paths->count; i++) {
		uint32_t path = paths->nodes[i];
		bool has_function = paths->ranks[path] < kept->functions;
		tree->is_plain[path] = i >= kept->classed;
		tree->is_lumped[path] = false;
		if (!making.places[path] || !has_function) {
			tree->of_path[path] = path_lump(&making, path, has_function);
			continue;
		}
		uint32_t place = making.places[path] - 1, asker = making.places[paths->askers[path]];
		tree->of_path[path] = place;
		tree->nodes[place].asker = asker ? asker - 1 : place;
	}
	map_fini(&making.lumps);
}

void cell_tree_fini(struct cell_tree *tree)
{
	free(tree->nodes);
	free(tree->of_path);
	free(tree->is_lumped);
	free(tree->is_plain);
	free(tree->places);
	free(tree->above);
	*tree = (struct cell_tree){.nodes = NULL};
}
