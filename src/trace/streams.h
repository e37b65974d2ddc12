/* SPDX-License-Identifier: MIT */
/**
 * The streams that a block's columns are split into. Both sides run the same predictions over what they know so far; a
 * stream only holds what was not predicted.
 */
#ifndef XHEAP_TRACE_STREAMS_H
#define XHEAP_TRACE_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers go into trace files: append, never reorder. */
enum stream_id {
	STREAM_PADDING,     /* no meaning */
	STREAM_DESCRIPTORS, /* the block's descriptors */
	STREAM_CONTROL,     /* a byte for each event: enum control */
	STREAM_STACK,
	STREAM_DESCRIPTOR,
	STREAM_SIZE,
	STREAM_USABLE,
	STREAM_ADDRESS,
	STREAM_TIME, /* bits that are cut, the first event's time */
	STREAM_REST,
	STREAM_BIRTHS,
	STREAM_GAP,                       /* one for each lane */
	STREAM_DURATION = STREAM_GAP + 4, /* likewise */
	STREAM_COUNT = STREAM_DURATION + 4
};

enum { STREAM_LANE_BITS = 2, STREAM_LANES = 1 << STREAM_LANE_BITS };
_Static_assert(STREAM_DURATION - STREAM_GAP == STREAM_LANES && STREAM_COUNT - STREAM_DURATION == STREAM_LANES,
	       "a stream for each lane");

/**
 * Times of one stack resemble each other, and zstd codes a stream of like numbers in fewer bits: so stacks share a few
 * lanes. One for each stack would take a coding table each.
 */
static inline uint32_t stream_lane(uint32_t node)
{
	return node * 0x9e3779b1u >> (32 - STREAM_LANE_BITS);
}

/** How long before an event's time its call began, and after it ended; a Free's time is that of its call. In ticks less
    the cut bits. */
static inline uint64_t stream_before(bool is_free, uint64_t duration)
{
	return is_free ? 0 : duration;
}
static inline uint64_t stream_after(bool is_free, uint64_t duration)
{
	return is_free ? duration : 0;
}

enum {
	STREAM_OPTIONAL = 0x80,   /* set in the id: a reader that does not know it leaves it out */
	STREAM_CONTEXTS = 0x80,   /* contexts of the thread, where they change */
	STREAM_RAW_PER_EVENT = 64 /* a stream has no more bytes for each event, and for none */
};

/* Bits of a control byte: what follows in the streams. */
enum control {
	CONTROL_STACK = 1,
	CONTROL_DESCRIPTOR = 2,
	CONTROL_SIZE = 4,
	CONTROL_USABLE = 8,
	CONTROL_PLACE = 16, /* 2 bits: enum model_place, or enum model_freed */
	CONTROL_PLACE_MASK = 3,
	CONTROL_REST = 128
};

/* Bits of a rest byte. */
enum rest { REST_PREVIOUS = 1, REST_ARGUMENT = 2, REST_ARGUMENT2 = 4, REST_RESULT = 8 };

#endif
