/* SPDX-License-Identifier: MIT */
#include "trace/stack_tree.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/memory.h"
#include "trace/code_rows.h"
#include "trace/row_ids.h"

enum { MEMORY_BITS = 12, FIRST_BITS = 10, ROWS_MAX = 1 << 30, FETCH_AHEAD = 16 };

struct tree_memory {
	uint32_t parent, frame, id;
};

bool tree_init(struct tree *tree)
{
	tree->nodes = calloc(1, sizeof(*tree->nodes));
	tree->ends = calloc(1, sizeof(*tree->ends));
	/* An id of 0 is the root, which nobody asks for: an unused row. */
	tree->memory = calloc(1 << MEMORY_BITS, sizeof(*tree->memory));
	if (!tree->nodes || !tree->ends || !tree->memory)
		return false;
	tree->nodes[0] = (struct trace_node){0, TRACE_NONE};
	tree->node_count = tree->node_capacity = 1;
	tree->frame_limit = tree->node_limit = UINT32_MAX;
	return true;
}

void tree_settle(struct tree *tree)
{
	free(tree->frame_cells);
	free(tree->node_cells);
	free(tree->memory);
	tree->frame_cells = tree->node_cells = NULL;
	tree->memory = NULL;
}

void tree_fini(struct tree *tree)
{
	tree_settle(tree);
	free(tree->frames);
	free(tree->nodes);
	free(tree->ends);
	*tree = (struct tree){0};
}

static uint64_t frame_hash(const struct tree *tree, uint32_t id)
{
	return hash_pair(tree->frames[id].offset, tree->frames[id].image);
}

static uint64_t node_hash(const struct tree *tree, uint32_t id)
{
	return hash_pair((uint64_t)tree->nodes[id].parent << 32 | tree->nodes[id].frame, 0);
}

/* Twice the cells, when they are half full. */
static bool cells_grow(const struct tree *tree, uint32_t **cells, uint32_t *bits, uint32_t first, uint32_t count,
		       uint64_t (*hash)(const struct tree *, uint32_t))
{
	if (*cells && count < (1u << *bits) / 2)
		return true;
	uint32_t larger_bits = *cells ? *bits + 1 : FIRST_BITS;
	uint32_t *larger = larger_bits < 32 ? calloc((size_t)1 << larger_bits, sizeof(*larger)) : NULL;
	if (!larger)
		return false;
	memory_prefer_large_pages(larger, ((size_t)1 << larger_bits) * sizeof(*larger));
	uint32_t mask = (uint32_t)((UINT64_C(1) << larger_bits) - 1);
	for (uint32_t id = first; id < count; id++) {
		/* The cells are scattered: ask the processor for later ones now. */
		if (id + FETCH_AHEAD < count)
			__builtin_prefetch(&larger[hash(tree, id + FETCH_AHEAD) & mask], 1);
		uint32_t place = (uint32_t)hash(tree, id) & mask;
		while (larger[place])
			place = (place + 1) & mask;
		larger[place] = id + 1;
	}
	free(*cells);
	*cells = larger;
	*bits = larger_bits;
	return true;
}

static bool is_frame(const struct tree *tree, uint32_t id, uint32_t image, uint64_t offset)
{
	return id < tree->frame_count && tree->frames[id].offset == offset && tree->frames[id].image == image;
}

static uint32_t frame_slowly(struct tree *tree, uint32_t image, uint64_t offset)
{
	if (!cells_grow(tree, &tree->frame_cells, &tree->frame_bits, 0, tree->frame_count, frame_hash) ||
	    tree->frame_count >= ROWS_MAX || !grow_by_one(tree->frames, tree->frame_count, tree->frame_capacity))
		return TRACE_NONE;
	uint32_t mask = (1u << tree->frame_bits) - 1;
	uint32_t place = (uint32_t)hash_pair(offset, image) & mask;
	for (uint32_t cell; (cell = tree->frame_cells[place]); place = (place + 1) & mask)
		if (is_frame(tree, cell - 1, image, offset))
			return cell - 1;
	if (tree->frame_count >= tree->frame_limit)
		return TRACE_NONE;
	tree->frames[tree->frame_count] = (struct trace_frame){image, offset};
	return (tree->frame_cells[place] = ++tree->frame_count) - 1;
}

/* A segment has its frames and nodes mostly in the order of the segments before it, so the one behind the last is tried
   first: it is at hand, where cells lie in places that nothing has read lately. */
uint32_t tree_frame(struct tree *tree, uint32_t image, uint64_t offset)
{
	uint32_t next = tree->last_frame + 1;
	uint32_t id = is_frame(tree, next, image, offset) ? next : frame_slowly(tree, image, offset);
	tree->last_frame = id == TRACE_NONE ? 0 : id;
	return id;
}

/* Room for one more node, beside its end. */
static bool nodes_grow(struct tree *tree)
{
	uint32_t ends_capacity = tree->node_capacity;
	if (tree->node_count < tree->node_capacity)
		return true;
	return tree->node_count < ROWS_MAX && grow_by_one(tree->ends, tree->node_count, ends_capacity) &&
	       grow_by_one(tree->nodes, tree->node_count, tree->node_capacity);
}

static uint8_t end_of(const struct tree *tree, uint32_t parent, uint32_t frame)
{
	const struct trace_frame *outermost = &tree->frames[frame];
	if (parent)
		return tree->ends[parent];
	return outermost->image != TRACE_NONE                ? TRACE_STACK_WHOLE
	       : outermost->offset == TRACE_FRAME_TRUNCATED  ? TRACE_STACK_TRUNCATED
	       : outermost->offset == TRACE_FRAME_UNWINDLESS ? TRACE_STACK_UNWINDLESS
							     : TRACE_STACK_WHOLE;
}

static bool is_node(const struct tree *tree, uint32_t id, uint32_t parent, uint32_t frame)
{
	return id < tree->node_count && tree->nodes[id].parent == parent && tree->nodes[id].frame == frame;
}

static uint32_t node_slowly(struct tree *tree, uint32_t parent, uint32_t frame)
{
	if (!cells_grow(tree, &tree->node_cells, &tree->node_bits, 1, tree->node_count, node_hash) || !nodes_grow(tree))
		return TRACE_NONE;
	uint32_t mask = (1u << tree->node_bits) - 1;
	uint32_t place = (uint32_t)hash_pair((uint64_t)parent << 32 | frame, 0) & mask;
	for (uint32_t cell; (cell = tree->node_cells[place]); place = (place + 1) & mask)
		if (is_node(tree, cell - 1, parent, frame))
			return cell - 1;
	if (tree->node_count >= tree->node_limit)
		return TRACE_NONE;
	tree->nodes[tree->node_count] = (struct trace_node){parent, frame};
	tree->ends[tree->node_count] = end_of(tree, parent, frame);
	return (tree->node_cells[place] = ++tree->node_count) - 1;
}

uint32_t tree_node(struct tree *tree, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	struct tree_memory *memory = &tree->memory[hash_bits(key, MEMORY_BITS)];
	if (__builtin_expect(memory->id && memory->parent == parent && memory->frame == frame, 1))
		return memory->id;
	uint32_t next = tree->last_node + 1;
	uint32_t id = is_node(tree, next, parent, frame) ? next : node_slowly(tree, parent, frame);
	if (id == TRACE_NONE)
		return id;
	*memory = (struct tree_memory){parent, frame, id};
	return tree->last_node = id;
}
