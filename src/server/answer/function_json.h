/* SPDX-License-Identifier: MIT */
/** Functions as pages know them: an image and a full name. */
#ifndef XHEAP_SERVER_FUNCTION_JSON_H
#define XHEAP_SERVER_FUNCTION_JSON_H

#include "action/report/action.h"

enum { FUNCTION_TEXT_BYTES = 24 };

/** Return the full name: the symbol, "+0x7504" without one, or a mark. `place` is room for it. */
const char *function_full(const struct heap_name *name, char place[FUNCTION_TEXT_BYTES]);

/** Write [image, full name]. */
void function_json_name(struct json *json, const char *key, const struct heap_name *name);

/** Write the first function of the user's code on the stack of a node; nothing for the empty stack. */
void function_json(struct json *json, const char *key, struct action_input *input, uint32_t node);

#endif
