/* SPDX-License-Identifier: MIT */
/** The heap of a process at the current position, and the events of its life. */
#ifndef XHEAP_DX_OBJECTS_STATE_H
#define XHEAP_DX_OBJECTS_STATE_H

#include <stdint.h>

/** The types of the events of a process's life. */
enum { DX_LIFE_KINDS = 4 };
#define DX_LIFE_WORDS "ThreadCreated", "ThreadTerminated", "ModuleLoaded", "ModuleUnloaded"

struct dx_query;
struct dx_value;

/** Set the collection of the heaps of a process. */
void dx_heap_uses(struct dx_query *query, uint32_t process, struct dx_value *value);

/** Set the collection of the threads and modules of a process that came and went. */
void dx_life_events(struct dx_query *query, uint32_t process, struct dx_value *value);

#endif
