/* SPDX-License-Identifier: MIT */
/**
 * The streams that a block's columns are split into. Both sides run the same predictions over what they know so far; a
 * stream only holds what was not predicted.
 */
#ifndef XHEAP_TRACE_STREAMS_H
#define XHEAP_TRACE_STREAMS_H

#include <stdint.h>

/* The numbers go into trace files: append, never reorder. */
enum stream_id {
	STREAM_PADDING,        /* no meaning */
	STREAM_DESCRIPTORS,    /* the block's descriptors */
	STREAM_CONTROL,        /* a byte for each event: enum control */
	STREAM_STACK,
	STREAM_DESCRIPTOR,
	STREAM_SIZE,
	STREAM_USABLE,
	STREAM_ADDRESS,
	STREAM_TIME,
	STREAM_DURATION,
	STREAM_REST,
	STREAM_BIRTHS,
	STREAM_COUNT
};

enum {
	STREAM_OPTIONAL = 0x80, /* set in the id: a reader that does not know it leaves it out */
	STREAM_RAW_PER_EVENT = 64 /* a stream has no more bytes for each event, and for none */
};

/* Bits of a control byte: what follows in the streams. */
enum control {
	CONTROL_STACK = 1,
	CONTROL_DESCRIPTOR = 2,
	CONTROL_SIZE = 4,
	CONTROL_USABLE = 8,
	CONTROL_PLACE = 16,    /* 2 bits: enum model_place, or enum model_freed */
	CONTROL_PLACE_MASK = 3,
	CONTROL_REST = 128
};

/* Bits of a rest byte. */
enum rest { REST_PREVIOUS = 1, REST_ARGUMENT = 2, REST_ARGUMENT2 = 4, REST_RESULT = 8 };

#endif
