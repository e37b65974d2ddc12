/* SPDX-License-Identifier: MIT */
/**
 * What both sides know while they go through a block: which event had a stack last, and how large blocks of a size are.
 */
#ifndef XHEAP_TRACE_MODEL_H
#define XHEAP_TRACE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_NONE = UINT32_MAX, MODEL_USABLE_BITS = 11 };

struct model {
	uint32_t *last;            /* for each node: epoch << 16 | index of the last event with it */
	uint32_t node_capacity;
	uint32_t epoch;
	uint64_t usable[1 << MODEL_USABLE_BITS]; /* for each class of sizes: usable bytes of the last block of it */
};

/** Begin a block whose nodes are below node_count. */
static inline bool model_begin(struct model *model, uint32_t node_count)
{
	if (node_count > model->node_capacity) {
		uint32_t capacity = node_count + node_count / 2 + 64;
		free(model->last);
		model->last = calloc(capacity, sizeof(*model->last));
		model->node_capacity = model->last ? capacity : 0;
		model->epoch = 0;
		if (!model->last)
			return false;
	}
	if (model->epoch == UINT16_MAX) {
		memset(model->last, 0, model->node_capacity * sizeof(*model->last));
		model->epoch = 0;
	}
	model->epoch++;
	memset(model->usable, 0, sizeof(model->usable));
	return true;
}

static inline void model_fini(struct model *model)
{
	free(model->last);
	model->last = NULL;
}

/** The last event with this stack before event i, or MODEL_NONE; i is the last one from now on. */
static inline uint32_t model_last(struct model *model, uint32_t node, uint32_t i)
{
	uint32_t last = model->last[node];
	model->last[node] = model->epoch << 16 | i;
	return last >> 16 == model->epoch ? last & UINT16_MAX : MODEL_NONE;
}

/** Where the usable bytes of the last block of this size are: allocators have one for every 8 bytes or more. */
static inline uint64_t *model_usable(struct model *model, uint64_t size)
{
	return &model->usable[((size + 7) >> 3) * 0x9e3779b97f4a7c15u >> (64 - MODEL_USABLE_BITS)];
}

#endif
