/* SPDX-License-Identifier: MIT */
/** Positions: points of a trace, written SEQUENCE:STEP in hexadecimal. */
#ifndef XHEAP_BASE_POSITION_H
#define XHEAP_BASE_POSITION_H

#include "base/text.h"

/** As a state of the heap, a position is behind its own point if that begins a block, and before it if that ends
    one. */
struct position {
	int64_t time_ns; /**< since the trace's start */
	/** number from 1 of the point among those of this nanosecond; 0: before all; POSITION_LAST: behind all */
	uint64_t step;
};
#define POSITION_LAST UINT64_MAX

/** The end of a trace, and its time. */
#define POSITION_END_TEXT "FFFFFFFFFFFFFFFE:0"
#define POSITION_END_NS (INT64_MAX / 2)

/** Parse a position; 0x may precede either number. Return false if the text is none. */
bool position_parse(const char *text, struct position *position);

/** Format a position; one with POSITION_LAST as its nanosecond, without a step. */
struct text position_text(struct position position);

#endif
