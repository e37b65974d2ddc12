/* SPDX-License-Identifier: MIT */
/** Encoding: columns of events as the bytes of a block. */
#ifndef XHEAP_TRACE_ENCODE_H
#define XHEAP_TRACE_ENCODE_H

#include <stdint.h>

struct bytes;
struct columns_descriptor;
struct columns_encoder;
struct writer_events;

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

#endif
