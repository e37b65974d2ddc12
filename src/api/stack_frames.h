/* SPDX-License-Identifier: MIT */
/** Stacks as frames with names. */
#ifndef XHEAP_API_STACK_FRAMES_H
#define XHEAP_API_STACK_FRAMES_H

#include <stdint.h>

#include "api/api.h"

/** With the lock held: the frames of a node of the names; they hold the trace. */
xheap_frames *api_frames_new(struct xheap_trace *trace, const struct heap_names *names, uint32_t node);

#endif
