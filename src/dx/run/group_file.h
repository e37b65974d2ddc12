/* SPDX-License-Identifier: MIT */
/** A group in a temporary file, which has more elements than the memory has room for. */
#ifndef XHEAP_DX_GROUP_FILE_H
#define XHEAP_DX_GROUP_FILE_H

#include "dx/core/query.h"

struct dx_group_file;

/** Begin one. It lives until `arena` is released and no value refers to it. */
struct dx_group_file *dx_group_file_new(struct dx_arena *arena);

/** Write an element, which dx_spill_takes(). */
void dx_group_file_add(struct dx_group_file *file, const struct dx_element *element);

/** End writing, and return a sequence of the elements, with a key. The query is stopped if they were not written. */
struct dx_value dx_group_file_value(struct dx_query *query, struct dx_group_file *file, const struct dx_value *key,
				    int column);

#endif
