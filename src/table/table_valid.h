/* SPDX-License-Identifier: MIT */
/** The invariants of a table that is whole, and of its parts (base/check.h). */
#ifndef XHEAP_TABLE_TABLE_VALID_H
#define XHEAP_TABLE_TABLE_VALID_H

#include <stdbool.h>

struct heap_groups;
struct heap_table;
struct live;

/** Whether each block is found at its address, and the count is theirs (base/check.h). */
bool live_is_valid(const struct live *live);

/** Return whether finished groups lie within the bytes that are written, and their counts are possible
    (base/check.h). */
bool groups_is_valid(const struct heap_groups *groups);

/** Return whether all parts of a complete table agree: rows, groups, sites, sums (base/check.h). It takes a pass over
    all rows. */
bool heap_table_is_valid(const struct heap_table *table);

#endif
