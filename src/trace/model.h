/* SPDX-License-Identifier: MIT */
/**
 * The model that encoder and decoder keep while they go through a block: which event had a stack last, how large blocks
 * of a size are, and where the allocator is likely to take the next block from: the last freed block of its class
 * (allocators keep such blocks in stacks), the end of the last block that was none of these, the end of the last block
 * of its class. A free is written as the place of its block in the order of births.
 */
#ifndef XHEAP_TRACE_MODEL_H
#define XHEAP_TRACE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
	MODEL_NONE = UINT32_MAX,
	MODEL_USABLE_BITS = 11,
	MODEL_BIRTH_BITS = 15,
	MODEL_EVENTS_MAX = 1 << 16,
	MODEL_ALIGNMENT = 16
};

/** The last event with a stack. */
struct model_stack {
	uint32_t last; /* epoch << 16 | index of the last event with it */
	uint32_t next; /* the stack of the event behind that one */
	uint32_t descriptor;
	uint32_t has_rest; /* some of the last one's seldom columns is not 0 */
	uint64_t size;
};

/** Blocks of a usable size. */
struct model_class {
	uint64_t end;   /* of the last one; 0: none yet */
	uint32_t freed; /* 1 + the event that gave birth to the one that was freed last; 0: none is free */
};

struct model {
	struct model_stack *stacks; /* for each node */
	uint32_t node_capacity;
	uint32_t epoch;
	uint32_t before;                         /* the stack of the event before */
	uint64_t usable[1 << MODEL_USABLE_BITS]; /* for each class of sizes: usable bytes of the last block of it */
	struct model_class classes[1 << MODEL_USABLE_BITS];
	uint32_t birth[1 << MODEL_BIRTH_BITS];   /* by address: epoch << 16 | index of the event that allocated it */
	uint16_t event[MODEL_EVENTS_MAX];        /* by the order of births */
	uint16_t order[MODEL_EVENTS_MAX];        /* by event */
	uint32_t freed_before[MODEL_EVENTS_MAX]; /* by event: the next of its class's list */
	uint32_t birth_count, last_order;        /* last_order: of the block that was freed last */
	/* the last block that was nobody's before, its end; the last freed one */
	uint64_t fresh, fresh_end, freed;
};

/** How an address is told of an event other than a Free. */
enum model_place { PLACE_FREED, PLACE_FRESH_END, PLACE_CLASS_END, PLACE_NUMBER };

/** How the address of a Free is told: born after the one that was freed last, so many births from it, by a number. */
enum model_freed { FREED_NEXT, FREED_ORDER, FREED_NUMBER };

/** The columns that the model looks back at. */
struct model_columns {
	const uint64_t *address, *usable, *previous;
};

/** Begin a block whose nodes are below node_count. */
static inline bool model_begin(struct model *model, uint32_t node_count)
{
	bool is_larger = node_count > model->node_capacity;
	if (is_larger) {
		uint32_t capacity = node_count + node_count / 2 + 64;
		free(model->stacks);
		model->stacks = malloc(capacity * sizeof(*model->stacks));
		model->node_capacity = model->stacks ? capacity : 0;
		if (!model->stacks)
			return false;
	}
	if (is_larger || model->epoch == UINT16_MAX) {
		memset(model->stacks, 0, model->node_capacity * sizeof(*model->stacks));
		memset(model->birth, 0, sizeof(model->birth));
		model->epoch = 0;
	}
	model->epoch++;
	memset(model->usable, 0, sizeof(model->usable));
	memset(model->classes, 0, sizeof(model->classes));
	model->birth_count = model->last_order = model->before = 0;
	model->fresh = model->fresh_end = model->freed = 0;
	return true;
}

static inline void model_fini(struct model *model)
{
	free(model->stacks);
	model->stacks = NULL;
}

/** Return the row of the next event's stack, or an empty one if no event of this block had that stack. */
static inline const struct model_stack *model_stack_known(const struct model *model, const struct model_stack *stack)
{
	static const struct model_stack nothing = {.descriptor = MODEL_NONE};
	return stack->last >> 16 == model->epoch ? stack : &nothing;
}

/** Note that the next event has this stack (a node). Return its row. */
static inline struct model_stack *model_stack(struct model *model, uint32_t node)
{
	model->stacks[model->before].next = node;
	model->before = node;
	return &model->stacks[node];
}

/** Return the place of the usable bytes of the last block of this size. Allocators have a class for every 8 bytes or
    more. */
static inline uint64_t *model_usable(struct model *model, uint64_t size)
{
	return &model->usable[hash_bits((size + 7) >> 3, MODEL_USABLE_BITS)];
}

static inline struct model_class *model_class(struct model *model, uint64_t usable)
{
	return &model->classes[hash_bits((usable + 7) >> 3, MODEL_USABLE_BITS)];
}

static inline uint32_t *model_birth_cell(struct model *model, uint64_t address)
{
	return &model->birth[hash_bits(address >> 4, MODEL_BIRTH_BITS)];
}

/** The event of this block that allocated what lives at address, or MODEL_NONE: before it, or forgotten. */
static inline uint32_t model_birth(struct model *model, const struct model_columns *columns, uint64_t address)
{
	uint32_t cell = *model_birth_cell(model, address), event = cell & UINT16_MAX;
	return cell >> 16 == model->epoch && columns->address[event] == address ? event : MODEL_NONE;
}

/** The number that tells an address is relative to this. */
static inline uint64_t model_base(const struct model *model, const struct model_class *class)
{
	return class->end ? class->end : model->fresh;
}

/** Note that the block at the address was freed. */
static inline void model_free(struct model *model, const struct model_columns *columns, uint64_t address)
{
	uint32_t birth = model_birth(model, columns, address);
	model->freed = address;
	if (birth == MODEL_NONE)
		return;
	struct model_class *class = model_class(model, columns->usable[birth]);
	model->last_order = model->order[birth];
	model->freed_before[birth] = class->freed;
	class->freed = birth + 1;
	*model_birth_cell(model, address) = 0;
}

/** Event i, not a Free, got columns->address[i], of `class`, as `place` tells. */
static inline void model_allocate(struct model *model, const struct model_columns *columns, uint32_t i,
				  struct model_class *class, uint8_t place)
{
	uint64_t address = columns->address[i], previous = columns->previous[i];
	uint64_t end = (address + columns->usable[i] + MODEL_ALIGNMENT - 1) & ~(uint64_t)(MODEL_ALIGNMENT - 1);
	if (!address)
		return;
	if (place == PLACE_FREED && class->freed) {
		class->freed = model->freed_before[class->freed - 1];
	} else {
		model->fresh = address;
		model->fresh_end = end;
	}
	class->end = end;
	if (previous && previous != address)
		model_free(model, columns, previous);
	*model_birth_cell(model, address) = model->epoch << 16 | i;
	model->order[i] = (uint16_t)model->birth_count;
	model->event[model->birth_count++] = (uint16_t)i;
}

#endif
