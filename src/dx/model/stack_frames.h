/* SPDX-License-Identifier: MIT */
/** Frames of stacks as objects, and the one of them that reports name: the first of the user's own code. */
#ifndef XHEAP_DX_STACK_FRAMES_H
#define XHEAP_DX_STACK_FRAMES_H

#include "dx/core/query.h"

extern const struct dx_class dx_frame_class;

/** Return the node in the tree of names of a stack, with the allocation function as frame 0 unless `entry` is
    TRACE_NONE. 0: no stack was recorded. */
uint32_t dx_stack_node(struct dx_query *query, uint32_t stack, uint32_t entry);

/** Return the frames from the node on as a text, innermost first, joined by ";". */
struct dx_value dx_stack(struct dx_query *query, uint32_t node);

/** Return such a text with the caller's frame alone and the number of the others, for people; other values as they
    are. */
struct dx_value dx_stack_folded(struct dx_query *query, const struct dx_value *value);

/** Return the frames from the node on, innermost first. */
struct dx_value dx_frames(struct dx_query *query, uint32_t node);

/** Return the first frame of the user's own code, as reports show it; without one, the outermost frame. DX_ABSENT:
    there is no stack. */
struct dx_value dx_caller(struct dx_query *query, uint32_t node);

#endif
