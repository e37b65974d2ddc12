/* SPDX-License-Identifier: MIT */
/** -stacks: one row per stack, frame by frame the same by name; and
    stacks as other actions write them. */
#ifndef XHEAP_ACTION_STACKS_H
#define XHEAP_ACTION_STACKS_H

#include <stdbool.h>
#include <stdint.h>

struct action_input;
struct heap_patterns;
struct json;

/** Return whether a frame of the stack of this innermost node is a place in an image that no symbol names. */
bool action_stack_has_offset(struct action_input *input, uint32_t node);

/** Return whether a frame of that stack matches one of the patterns. */
bool action_stack_matches(struct action_input *input, uint32_t node, struct heap_patterns *patterns);

/** Return the stack of this innermost node as one line. The caller frees it. */
char *action_stack_text(struct action_input *input, uint32_t node);

/** Return the stack of this innermost node as lines for people (action/report/stack_view.h) and an empty one. The
    caller frees them. */
char *action_stack_lines(struct action_input *input, uint32_t node);

/** Write a stack as an array "stack" of an open object. */
void action_stack_json(struct action_input *input, uint32_t node, struct json *json);

#endif
