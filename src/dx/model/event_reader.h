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

/** Return an event's positions. */
struct dx_value dx_event_start(const struct dx_event *event);
struct dx_value dx_event_end(const struct dx_event *event);

#endif
