/* SPDX-License-Identifier: MIT */
/** The columns of a block of events as bytes, both ways. docs/trace-format.md explains the coding. */
#ifndef XHEAP_TRACE_COLUMNS_H
#define XHEAP_TRACE_COLUMNS_H

#include "trace/bytes.h"
#include "trace/reader.h"
#include "trace/writer.h"

/** Values that many events of a block share. The encoder is given ids of the trace; the file has numbers of the
    segment. */
struct columns_descriptor {
	uint8_t kind, flags;
	uint16_t entry;
	uint32_t heap;
};

struct columns_encoder;

/** The rows of a block's segment, to check numbers against. `entries` and `heaps` give the trace-wide ids. */
struct columns_scope {
	uint32_t node_count, entry_count, heap_count;
	const uint32_t *nodes, *entries, *heaps;
};

/** Decoded columns; times and durations are ticks. */
struct columns {
	uint32_t count;
	uint8_t *kind, *flags;
	uint16_t *entry;
	uint32_t *heap, *stack;
	uint64_t *time, *duration, *address, *previous, *size, *usable, *argument, *argument2;
	int32_t *result;
	struct context_change *contexts; /**< in the order of their events */
	uint32_t context_count, context_capacity;
	const struct columns_descriptor *descriptors; /**< what of this each event has is one of these */
	uint32_t *uses;                               /**< by descriptor: how many events have it */
	uint32_t descriptor_count;
};

struct columns_decoder;

#endif
