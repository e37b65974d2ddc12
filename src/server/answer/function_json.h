/* SPDX-License-Identifier: MIT */
/** Functions as pages know them: an image and a full name, as in cells. */
#ifndef XHEAP_SERVER_FUNCTION_JSON_H
#define XHEAP_SERVER_FUNCTION_JSON_H

#include "action/report/action.h"

/** Write [image, full name] of a name. */
void function_json_name(struct json *json, const char *key, const struct heap_names *names, uint32_t name);

/** Write the first function of the user's code on the stack of a node; nothing for the empty stack. */
void function_json(struct json *json, const char *key, struct action_input *input, uint32_t node);

enum { FRAMES_MAX = 64 };

/** Write the frames of a stack, innermost first, at most FRAMES_MAX: of each its function's names, file, line and
    marks. */
void function_json_frames(struct json *json, const char *key, const struct heap_names *names, uint32_t node);

/** Write the frames of a site as function_json_frames() does, with the line of each call: a node stands for calls from
    several lines. Nothing for HEAP_NONE. */
void function_json_site(struct json *json, const char *key, const struct action_source *source, uint32_t site);

#endif
