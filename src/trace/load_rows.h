/* SPDX-License-Identifier: MIT */
/** Loading rows of each type, from a block to the dictionary. */
#ifndef XHEAP_TRACE_LOAD_ROWS_H
#define XHEAP_TRACE_LOAD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

struct load;
struct load_ids;
struct map;
struct reading;

/** Whether this program knows rows of this type. */
bool load_has_row_type(uint32_t type);

/** Read one row of a type that load_has_row_type(). Return false if it is not valid. */
bool load_take_row(struct load *load, uint32_t type, struct reading *reading);

/** The trace-wide id of a process, thread or mapping that the file numbers so; TRACE_NONE: none is known. */
uint32_t load_known_id(const struct load *load, const struct map *map, uint32_t id);

/** Add a trace-wide id to those of a segment. Return false if it is none, or without memory. */
bool load_ids_add(struct load_ids *ids, uint32_t id);

#endif
