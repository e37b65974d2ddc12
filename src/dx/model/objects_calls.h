/* SPDX-License-Identifier: MIT */
/** TTD.Calls(): calls of heap functions, named by image and function. */
#ifndef XHEAP_DX_OBJECTS_CALLS_H
#define XHEAP_DX_OBJECTS_CALLS_H

#include <stdbool.h>
#include <stddef.h>

struct dx_method_call;
struct dx_query;
struct dx_value;

/** Calls("image!function", ...), over the calls of a process, or of all. */
void dx_calls(struct dx_query *query, struct dx_method_call *call, struct dx_value *result);

/** Return the names of the functions that calls may be of, and set their number. Those without an image are also names
    of functions that the trace lacks. */
const char *const *dx_function_names(struct dx_query *query, bool has_image, size_t *count);

#endif
