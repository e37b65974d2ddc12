/* SPDX-License-Identifier: MIT */
#include "cells/cell_tree.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"

/* ---- paths ---- */

enum weight { WEIGHT_BYTES, WEIGHT_BLOCKS, WEIGHT_LIVE, WEIGHT_NEVER_FREED, WEIGHT_COUNT };

/* A path with its sums. */
struct path {
	uint32_t node;
	uint64_t made_bytes, weights[WEIGHT_COUNT];
	double share;
};

struct path_list {
	struct path *items;
	uint32_t count;
	size_t capacity;
	uint32_t *numbers; /* by node of the names: the path's number plus 1 */
};

static struct path *path_at(struct path_list *list, uint32_t node)
{
	if (!list->numbers[node]) {
		memory_grow(list->items, list->count, list->capacity);
		list->items[list->count] = (struct path){.node = node};
		list->numbers[node] = ++list->count;
	}
	return &list->items[list->numbers[node] - 1];
}

static void paths_weigh(struct path_list *list, const struct cell_set *set, uint32_t moment)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct cell *cell = &set->cells[i];
		const struct cell_keys keys = cell_keys_of(cell);
		struct path *path = path_at(list, keys.node);
		path->made_bytes += keys.birth ? cell->sums.bytes : 0;
		path->weights[WEIGHT_BYTES] += cell->sums.bytes;
		path->weights[WEIGHT_BLOCKS] += cell->sums.blocks;
		if (keys.birth <= moment && moment < keys.end)
			path->weights[WEIGHT_LIVE] += cell->sums.bytes;
		if (keys.kind != CELL_FREED)
			path->weights[WEIGHT_NEVER_FREED] += cell->sums.bytes;
	}
}

/* Stacks that are one word are never lumped, as long as there is room for any path. */
static bool is_word(const struct heap_names *names, uint32_t node)
{
	const struct heap_frame *frame = heap_names_frame(names, node);
	return !node || (!frame->parent && heap_names_name(names, frame->name)->is_mark);
}

/* Lumps have a share below all others. */
static void paths_share(struct path_list *list, const struct heap_names *names)
{
	uint32_t name_nodes = heap_names_node_count(names);
	double all[WEIGHT_COUNT] = {0};
	for (uint32_t i = 0; i < list->count; i++)
		for (unsigned k = 0; k < WEIGHT_COUNT; k++)
			all[k] += (double)list->items[i].weights[k];
	for (uint32_t i = 0; i < list->count; i++) {
		struct path *path = &list->items[i];
		path->share = path->node >= name_nodes ? -1 : is_word(names, path->node) ? 2 : 0;
		for (unsigned k = 0; k < WEIGHT_COUNT; k++) {
			double share = all[k] > 0 ? (double)path->weights[k] / all[k] : 0;
			path->share = path->share >= 0 && share > path->share ? share : path->share;
		}
	}
}

static int path_compare(const void *a, const void *b)
{
	const struct path *left = a, *right = b;
	if (left->share < right->share || left->share > right->share)
		return left->share > right->share ? -1 : 1;
	return (left->node > right->node) - (left->node < right->node);
}

static void askers_find(struct cell_paths *paths, struct heap_names *names, struct heap_cull *cull)
{
	for (uint32_t i = 0; i < paths->count; i++) {
		uint32_t node = paths->nodes[i], frame = node;
		if (node >= paths->name_nodes)
			frame = paths->lumps[node - paths->name_nodes].frame;
		paths->askers[node] = cull ? heap_cull_node(cull, names, frame) : frame;
	}
}

void cell_paths_find(struct cell_paths *paths, const struct cell_set *set, uint32_t moment, struct heap_names *names,
		     struct heap_cull *cull, const struct cell_lump *lumps, uint32_t lump_count)
{
	uint32_t name_nodes = heap_names_node_count(names), nodes = name_nodes + lump_count;
	struct path_list list = {.numbers = memory_zeroed(nodes, sizeof(uint32_t))};
	paths_weigh(&list, set, moment);
	paths_share(&list, names);
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), path_compare);
	*paths = (struct cell_paths){.nodes = memory_zeroed(list.count, sizeof(uint32_t)),
				     .bytes = memory_zeroed(list.count, sizeof(uint64_t)),
				     .askers = memory_zeroed(nodes, sizeof(uint32_t)),
				     .count = list.count,
				     .name_nodes = name_nodes,
				     .lumps = lumps,
				     .lump_count = lump_count};
	for (uint32_t i = 0; i < list.count; i++) {
		paths->nodes[i] = list.items[i].node;
		paths->bytes[i] = list.items[i].made_bytes;
		paths->named += list.items[i].node < name_nodes;
	}
	askers_find(paths, names, cull);
	free(list.items);
	free(list.numbers);
}

void cell_paths_fini(struct cell_paths *paths)
{
	free(paths->nodes);
	free(paths->bytes);
	free(paths->askers);
	*paths = (struct cell_paths){.nodes = NULL};
}

/* ---- the tree ---- */

/* A tree under construction. */
struct tree_making {
	struct cell_tree *tree;
	const struct cell_paths *paths;
	const struct heap_names *names;
	uint32_t *places; /* by node of the names: its node in the tree plus 1, if it is on a kept path */
	struct map lumps; /* a node of the tree plus 1, or 0, and a name: the lump under it */
};

static uint32_t node_add(struct cell_tree *tree, uint32_t parent, uint32_t frame, uint32_t name)
{
	memory_grow(tree->nodes, tree->count, tree->capacity);
	tree->nodes[tree->count] =
		(struct cell_node){.parent = parent, .frame = frame, .name = name, .asker = tree->count};
	return tree->count++;
}

static uint32_t parent_of(const struct tree_making *making, uint32_t node)
{
	return node < making->paths->name_nodes ? heap_names_frame(making->names, node)->parent : 0;
}

/* All nodes of kept paths; node 0 has a place only as a path. */
static void kept_add(struct tree_making *making, uint32_t kept)
{
	uint32_t count = making->paths->name_nodes;
	for (uint32_t i = 0; i < kept; i++)
		making->places[making->paths->nodes[i]] = 1;
	for (uint32_t node = count; node-- > 1;)
		if (making->places[node] && parent_of(making, node))
			making->places[parent_of(making, node)] = 1;
	for (uint32_t node = 0; node < count; node++) {
		uint32_t parent = node ? parent_of(making, node) : 0;
		if (!making->places[node])
			continue;
		uint32_t name = node ? heap_names_frame(making->names, node)->name : CELL_NO_STACK;
		making->places[node] =
			node_add(making->tree, parent ? making->places[parent] : 0, node ? node : HEAP_NONE, name) + 1;
	}
}

/* The lump of this name below a place, made if it is new. */
static uint32_t lump_below(struct tree_making *making, uint32_t place, uint32_t name)
{
	bool added;
	uint32_t *lump = map_add(&making->lumps, map_pair(place, name), &added);
	return added ? (*lump = node_add(making->tree, place, HEAP_NONE, name)) : *lump;
}

/* Lump a path under the last frame that it shares with a kept one. */
static uint32_t path_lump(struct tree_making *making, uint32_t path, bool has_function)
{
	const struct cell_paths *paths = making->paths;
	uint32_t shared = path, asker = paths->askers[path],
		 stacks = path < paths->name_nodes ? 1 : paths->lumps[path - paths->name_nodes].stacks;
	while (shared && !making->places[shared])
		shared = parent_of(making, shared);
	uint32_t lump = lump_below(making, shared ? making->places[shared] : 0, CELL_SMALLER_STACKS);
	making->tree->nodes[lump].stacks += stacks;
	making->tree->lumped_stacks += stacks;
	making->tree->is_lumped[path] = 1;
	if (!has_function)
		return lump;
	uint32_t name = asker ? heap_names_frame(making->names, asker)->name : CELL_NO_STACK;
	lump = lump_below(making, lump + 1, name);
	making->tree->nodes[lump].stacks += stacks;
	return lump;
}

void cell_tree_make(struct cell_tree *tree, const struct cell_paths *paths, uint32_t kept, uint32_t with_function,
		    const struct heap_names *names)
{
	uint32_t nodes = paths->name_nodes + paths->lump_count;
	struct tree_making making = {
		.tree = tree, .paths = paths, .names = names, .places = memory_zeroed(nodes, sizeof(uint32_t))};
	*tree = (struct cell_tree){.of_path = memory_zeroed(nodes, sizeof(uint32_t)),
				   .is_lumped = memory_zeroed(nodes, sizeof(uint8_t))};
	kept_add(&making, kept);
	for (uint32_t i = 0; i < paths->count; i++) {
		uint32_t path = paths->nodes[i];
		if (!making.places[path]) {
			tree->of_path[path] = path_lump(&making, path, i < with_function);
			continue;
		}
		uint32_t place = making.places[path] - 1, asker = making.places[paths->askers[path]];
		tree->of_path[path] = place;
		tree->nodes[place].asker = asker ? asker - 1 : place;
	}
	map_fini(&making.lumps);
	free(making.places);
}

void cell_tree_fini(struct cell_tree *tree)
{
	free(tree->nodes);
	free(tree->of_path);
	free(tree->is_lumped);
	*tree = (struct cell_tree){.nodes = NULL};
}
