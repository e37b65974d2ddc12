/* SPDX-License-Identifier: MIT */
/** The limits of the numbers in the groups of a table: checkpoints need them, too. */
#ifndef XHEAP_TABLE_TABLE_LIMITS_H
#define XHEAP_TABLE_TABLE_LIMITS_H

#include "table/table.h"

/** Return the limits of the numbers in its groups. */
struct pack_limits heap_table_limits(const struct heap_table *table);

#endif
