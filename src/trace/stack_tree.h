/* SPDX-License-Identifier: MIT */
/** Frames and the stack tree: equal ones have one id. Zero it to begin. */
#ifndef XHEAP_TRACE_STACK_TREE_H
#define XHEAP_TRACE_STACK_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct trace_frame;
struct trace_node;

struct tree {
	struct trace_frame *frames;
	struct trace_node *nodes; /* 0 is the root */
	uint8_t *ends;            /* enum trace_stack_end, by node */
	uint32_t frame_count, frame_capacity, node_count, node_capacity;
	/* id + 1, open addressing: 4 bytes a row, where base/map.h takes 16 and has each key once more */
	uint32_t *frame_cells, *node_cells;
	uint32_t frame_bits, node_bits;
	uint32_t frame_limit, node_limit; /* no more are added from these counts on */
	struct tree_memory *memory;       /* the nodes asked for last, by a hash of what was asked */
	uint32_t last_frame, last_node;   /* found last: the next one asked for mostly follows it */
};

/** Begin with the root. Return false without memory; tree_fini() is needed either way. */
bool tree_init(struct tree *tree);

/** Free the tree. */
void tree_fini(struct tree *tree);

/** No more is asked for: drop what finds ids. */
void tree_settle(struct tree *tree);

/** The id of the frame, or TRACE_NONE: it would be one more than the limit, or there is no memory (or no number
    left). */
uint32_t tree_frame(struct tree *tree, uint32_t image, uint64_t offset);

/** The id of `frame` called from `parent`, likewise; both must exist. */
uint32_t tree_node(struct tree *tree, uint32_t parent, uint32_t frame);

#endif
