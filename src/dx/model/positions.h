/* SPDX-License-Identifier: MIT */
/** Positions SEQUENCE:STEP: instants of a trace, as values and as texts. */
#ifndef XHEAP_DX_POSITIONS_H
#define XHEAP_DX_POSITIONS_H

#include "dx/core/value.h"

extern const struct dx_class dx_position_range_class;

/** The data of a range of positions; its class is dx_position_range_class. */
struct dx_position_range {
	struct dx_value min, max;
};

/** Return a range as a value. */
struct dx_value dx_position_range(struct dx_query *query, struct dx_value min, struct dx_value max);

/** Return the current position. Until one is set, it is the end: of the process, behind all its calls; or of the trace
    (TRACE_NONE). */
struct dx_value dx_position_current(struct dx_query *query, uint32_t process);

/** Move the current position, and print where it is. */
void dx_position_seek(struct dx_query *query, const struct dx_value *position);

/** Return the approximate time of day of the position, UTC, as a text; or an error. */
struct dx_value dx_position_system_time(struct dx_query *query, const struct dx_value *position);

/** Set the position that an argument names: one as a value or as "SEQUENCE:STEP"; a percentage of the trace's duration,
    as a number or "50%"; a time such as "10ms", behind all points of its nanosecond. Beyond the trace both are its end.
    False: the argument names none, and *position is an error that says what would. */
bool dx_position_take(struct dx_query *query, const struct dx_value *argument, struct dx_value *position);

#endif
