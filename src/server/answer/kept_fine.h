/* SPDX-License-Identifier: MIT */
/** Fine cells that an index keeps. */
#ifndef XHEAP_SERVER_KEPT_FINE_H
#define XHEAP_SERVER_KEPT_FINE_H

#include "cells/fine_cells.h"

/** Read the fine cells of a table. Return false if there are none; that there would be too many is kept, too. */
bool kept_fine_read(struct fine_cells *fine, const struct heap_table *table);

/** Keep the fine cells of a table in its index, if it has one of this user's. */
void kept_fine_write(const struct fine_cells *fine, const struct heap_table *table);

#endif
