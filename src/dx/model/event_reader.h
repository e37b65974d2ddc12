/* SPDX-License-Identifier: MIT */
/** Events in the order of dump, with the steps of their points. */
#ifndef XHEAP_DX_EVENT_READER_H
#define XHEAP_DX_EVENT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "dx/model/objects.h"

/** Read the trace's events from the start, without a query: the model of dump and steps. */
struct dx_event_reader;
struct dx_event_reader *dx_event_reader_new(const struct trace *trace);
/** Set the next event of the eight actions; 1, 0 at the end, or a negative errno with the reason in `diag`. */
int dx_event_reader_next(struct dx_event_reader *reader, struct dx_event *event, struct diag *diag);
void dx_event_reader_free(struct dx_event_reader *reader);

/** Find the event that has the point with this ordinal. The points around it are read, and kept for later searches.
    False: no event has it, such as HEAP_NONE. */
bool dx_event_find(struct dx_query *query, uint32_t point, struct dx_event *event);

/** A point whose event is wanted. */
struct dx_wanted {
	int64_t time_ns;
	uint32_t point, step; /**< its ordinal, and its step in its nanosecond */
	bool is_found;
	struct dx_event event; /**< if it is found */
};

/** Find the events of points, sorted by time and ordinal. Only event blocks around these points are read. Not found are
    points of no event, and those whose events cannot be told without reading more: dx_event_find() has them. */
void dx_events_read(struct dx_query *query, struct dx_wanted *wanted, uint32_t count);

/** Return the one of these points that has the time and the ordinal of `point`; NULL: there is none. */
const struct dx_wanted *dx_wanted_find(const struct dx_wanted *wanted, uint32_t count, const struct dx_wanted *point);

/** Return an event's positions. */
struct dx_value dx_event_start(const struct dx_event *event);
struct dx_value dx_event_end(const struct dx_event *event);

#endif
