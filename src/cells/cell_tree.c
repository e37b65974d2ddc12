/* SPDX-License-Identifier: MIT */
#include "cells/cell_tree.h"

#include <stdlib.h>
#include <string.h>

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
static uint32_t function_of(const struct cell_path *path)
{
	return path->asker ? path->name + 1 : 0;
}

/* Shares of nodes, with all that they call. */
static void levels_find(struct cell_paths *paths, const struct cell_weights *weights, const struct cell_weights *all)
{
	struct cell_weights *sums = memory_zeroed((size_t)paths->all_count + 1, sizeof(*sums));
	for (uint32_t i = paths->all_count; i-- > 0;) {
		struct cell_path_node *at = &paths->all[i];
		double share;
		weights_add(&sums[i + 1], &weights[at->node]);
		weights_add(&sums[at->parent], &sums[i + 1]);
		for (share = share_of(&sums[i + 1], all); at->level < CELL_LEVELS && share < 1; share *= 2)
			at->level++;
	}
	free(sums);
}

/* Nodes of paths, and of all that is around them. */
static void all_list(struct cell_paths *paths, const struct heap_names *names)
{
	uint32_t *numbers = memory_zeroed(paths->node_count, sizeof(*numbers));
	for (uint32_t i = 0; i < paths->count; i++)
		numbers[paths->items[i].node] = 1;
	numbers[0] = 0;
	for (uint32_t node = paths->node_count; node-- > 1;) {
		paths->all_count += numbers[node];
		if (numbers[node])
			numbers[heap_names_frame(names, node)->parent] = 1;
	}
	numbers[0] = 0;
	paths->all = memory_zeroed(paths->all_count, sizeof(*paths->all));
	for (uint32_t node = 1, at = 0; node < paths->node_count; node++) {
		if (!numbers[node])
			continue;
		const struct heap_frame *frame = heap_names_frame(names, node);
		paths->all[at] =
			(struct cell_path_node){.node = node, .name = frame->name, .parent = numbers[frame->parent]};
		numbers[node] = ++at;
	}
	for (uint32_t i = 0; i < paths->count; i++) {
		struct cell_path *path = &paths->items[i];
		path->number = numbers[path->node];
		path->asker_number = numbers[path->asker];
	}
	free(numbers);
}

static void functions_rank(struct cell_paths *paths, const struct cell_share *shares, const struct cell_weights *all,
			   const struct heap_names *names)
{
	uint32_t name_count = heap_names_count(names) + 1, *ranks = memory_zeroed(name_count, sizeof(*ranks));
	struct cell_share *functions = memory_zeroed(name_count, sizeof(*functions));
	for (uint32_t i = 0; i < name_count; i++)
		functions[i] = (struct cell_share){.number = i, .share = -1};
	for (uint32_t i = 0; i < paths->count; i++) {
		struct cell_share *function = &functions[function_of(&paths->items[i])];
		weights_add(&function->weights, &shares[i].weights);
		function->share = share_of(&function->weights, all);
	}
	for (uint32_t i = 0; i < paths->count && shares[i].share > 1; i++)
		functions[function_of(&paths->items[i])].share = shares[i].share;
	qsort(functions, name_count, sizeof(*functions), share_compare);
	for (uint32_t i = 0; i < name_count; i++) {
		ranks[functions[i].number] = i;
		paths->functions += functions[i].share >= 0;
	}
	for (uint32_t i = 0; i < paths->count; i++)
		paths->items[i].rank = ranks[function_of(&paths->items[i])];
	free(functions);
	free(ranks);
}

static struct cell_path path_of(const struct cell_share *share, struct heap_names *names, struct heap_cull *cull)
{
	uint32_t asker = cull ? heap_cull_node(cull, names, share->number) : share->number;
	return (struct cell_path){.node = share->number,
				  .asker = asker,
				  .name = asker ? heap_names_frame(names, asker)->name : CELL_NO_STACK,
				  .made_bytes = share->weights.made_bytes};
}

void cell_paths_find(struct cell_paths *paths, const struct cell_weights *weights, struct heap_names *names,
		     struct heap_cull *cull)
{
	enum { WORD_SHARE = 2 /* above all others */ };
	struct cell_weights all = {.bytes = 0};
	struct cell_share *shares = NULL;
	size_t capacity = 0;
	*paths = (struct cell_paths){.node_count = heap_names_node_count(names)};
	for (uint32_t node = 0; node < paths->node_count; node++)
		weights_add(&all, &weights[node]);
	for (uint32_t node = 0; node < paths->node_count; node++) {
		if (!weights[node].blocks)
			continue;
		memory_grow(shares, paths->count, capacity);
		shares[paths->count++] = (struct cell_share){
			node, weights[node], is_word(names, node) ? WORD_SHARE : share_of(&weights[node], &all)};
	}
	if (paths->count)
		qsort(shares, paths->count, sizeof(*shares), share_compare);
	paths->items = memory_zeroed(paths->count, sizeof(*paths->items));
	for (uint32_t i = 0; i < paths->count; i++)
		paths->items[i] = path_of(&shares[i], names, cull);
	all_list(paths, names);
	functions_rank(paths, shares, &all, names);
	levels_find(paths, weights, &all);
	free(shares);
}

void cell_paths_fini(struct cell_paths *paths)
{
	free(paths->items);
	free(paths->all);
	*paths = (struct cell_paths){.items = NULL};
}

/* ---- the tree ---- */

/* A tree under construction. */
struct tree_making {
	struct cell_tree *tree;
	const struct cell_paths *paths;
	/* By number of all plus 1, 0 of none: its node in the tree plus 1, if it is on a kept path. */
	uint32_t *places;
	/* Likewise: the place of the last frame under which others may be lumped, itself included. */
	uint32_t *above;
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
	uint32_t *places = making->places, *above = making->above;
	memset(places, 0, ((size_t)paths->all_count + 1) * sizeof(*places));
	for (uint32_t i = 0; i < kept->paths; i++)
		if (paths->items[i].rank < kept->functions)
			places[paths->items[i].number] = 1;
	bool has_none = places[0];
	for (uint32_t i = paths->all_count; i-- > 0;)
		places[paths->all[i].parent] |= places[i + 1];
	places[0] = has_none ? node_add(making->tree, 0, HEAP_NONE, CELL_NO_STACK) + 1 : 0;
	for (uint32_t i = 0; i < paths->all_count; i++) {
		const struct cell_path_node *at = &paths->all[i];
		above[i + 1] = above[at->parent];
		if (!places[i + 1])
			continue;
		uint32_t parent = at->parent ? places[at->parent] : 0;
		places[i + 1] = node_add(making->tree, parent, at->node, at->name) + 1;
		if (at->level <= kept->levels)
			above[i + 1] = places[i + 1];
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
static uint32_t path_lump(struct tree_making *making, const struct cell_path *path, bool has_function)
{
	uint32_t lump = lump_below(making, making->above[path->number], CELL_SMALLER_STACKS);
	making->tree->nodes[lump].stacks++;
	making->tree->lumped_stacks++;
	making->tree->is_lumped[path->node] = true;
	if (!has_function)
		return lump;
	lump = lump_below(making, lump + 1, path->name);
	making->tree->nodes[lump].stacks++;
	return lump;
}

static void tree_begin(struct cell_tree *tree, const struct cell_paths *paths)
{
	if (!tree->of_path) {
		tree->of_path = memory_zeroed(paths->node_count, sizeof(uint32_t));
		tree->is_lumped = memory_zeroed(paths->node_count, sizeof(bool));
		tree->is_plain = memory_zeroed(paths->node_count, sizeof(bool));
		tree->places = memory_zeroed((size_t)paths->all_count + 1, sizeof(uint32_t));
		tree->above = memory_zeroed((size_t)paths->all_count + 1, sizeof(uint32_t));
	}
	tree->count = tree->lumped_stacks = 0;
}

static void nodes_make(struct cell_tree *tree, const struct cell_paths *paths, const struct cell_kept *kept)
{
	struct tree_making making = {.tree = tree, .paths = paths, .places = tree->places, .above = tree->above};
	tree->lumped_functions = paths->functions - kept->functions;
	kept_add(&making, kept);
	for (uint32_t i = 0; i < paths->count; i++) {
		const struct cell_path *path = &paths->items[i];
		uint32_t place = making.places[path->number], asker = making.places[path->asker_number];
		bool has_function = path->rank < kept->functions;
		tree->is_lumped[path->node] = false;
		if (!place || !has_function) {
			tree->of_path[path->node] = path_lump(&making, path, has_function);
			continue;
		}
		tree->of_path[path->node] = place - 1;
		tree->nodes[place - 1].asker = asker ? asker - 1 : place - 1;
	}
	map_fini(&making.lumps);
}

void cell_tree_make(struct cell_tree *tree, const struct cell_paths *paths, const struct cell_kept *kept)
{
	bool is_other = !tree->of_path || kept->functions != tree->kept.functions || kept->paths != tree->kept.paths ||
			kept->levels != tree->kept.levels;
	if (is_other) {
		tree_begin(tree, paths);
		nodes_make(tree, paths, kept);
	}
	for (uint32_t i = 0; i < paths->count; i++)
		tree->is_plain[paths->items[i].node] = i >= kept->classed;
	tree->kept = *kept;
}

void cell_tree_spread_plain(struct cell_tree *tree, const struct cell_paths *paths, bool *nodes)
{
	for (uint32_t i = 0; i < paths->count; i++)
		nodes[tree->of_path[paths->items[i].node]] |= tree->is_plain[paths->items[i].node];
	for (uint32_t i = 0; i < paths->count; i++)
		tree->is_plain[paths->items[i].node] = nodes[tree->of_path[paths->items[i].node]];
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
