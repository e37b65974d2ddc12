/* SPDX-License-Identifier: MIT */
/** The columns of a block of events as bytes, both ways. docs/trace-format.md explains the coding. */
#ifndef XHEAP_TRACE_COLUMNS_H
#define XHEAP_TRACE_COLUMNS_H

#include "trace/bytes.h"
#include "trace/trace.h"
#include "trace/writer.h"

/** Values that many events of a block share. The encoder is given ids of the trace; the file has numbers of the
    segment. */
struct columns_descriptor {
	uint8_t kind, flags;
	uint16_t entry;
	uint32_t heap;
};

struct columns_encoder;

/** Return an encoder for a level of zstd, below 0: nothing is compressed; NULL without memory. */
struct columns_encoder *columns_encoder_new(int compression);

/** Free the encoder, which may be NULL. */
void columns_encoder_free(struct columns_encoder *encoder);

/**
 * Code the events, whose stacks are nodes[] of the segment (below node_count). Their descriptors can be had until
 * columns_finish(), which is told how they are to be written. The lowest cut_bits of times and durations are left out.
 * 0 or -ENOMEM.
 */
int columns_encode(struct columns_encoder *encoder, const struct writer_events *events, const uint32_t *nodes,
		   uint32_t node_count, uint32_t cut_bits);

/** Return the descriptors of the events that were coded last, and their number; the encoder owns them. */
struct columns_descriptor *columns_descriptors(struct columns_encoder *encoder, uint32_t *count);

/** Add the payload to out. The caller has put the segment's numbers into the descriptors. 0 or -ENOMEM. */
int columns_finish(struct columns_encoder *encoder, struct bytes *out);

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
	const struct columns_descriptor *descriptors; /**< what of this each event has is one of these */
	uint32_t *uses;                               /**< by descriptor: how many events have it */
	uint32_t descriptor_count;
};

struct columns_decoder;

/** Return a decoder, or NULL without memory. */
struct columns_decoder *columns_decoder_new(void);

/** Free the decoder, which may be NULL. */
void columns_decoder_free(struct columns_decoder *decoder);

/** Decode `count` events. NULL, or what is wrong with the payload. The columns are valid until the next call. */
const char *columns_decode(struct columns_decoder *decoder, const uint8_t *payload, size_t payload_bytes,
			   uint32_t count, const struct columns_scope *scope, struct columns *columns);

#endif
