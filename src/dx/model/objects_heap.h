/* SPDX-License-Identifier: MIT */
/** Heap objects: one for each heap call of the trace. */
#ifndef XHEAP_DX_OBJECTS_HEAP_H
#define XHEAP_DX_OBJECTS_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct dx_event;
struct dx_query;

/** Return the flags word of an event, and whether it has one. */
bool dx_event_flags(struct dx_query *query, const struct dx_event *event, uint64_t *flags);

#endif
