/* SPDX-License-Identifier: MIT */
/** Resident memory by interval. */
#ifndef XHEAP_CELLS_CELL_RESIDENT_H
#define XHEAP_CELLS_CELL_RESIDENT_H

#include "cells/cell_bounds.h"

struct trace_dictionary;

/** Return, by interval, the largest sum of what processes had when one of them was measured: of each that lived then,
    what was measured last. UINT64_MAX: nothing was measured. The caller frees the array. */
uint64_t *cell_resident_find(const struct trace_dictionary *dictionary, const struct cell_bounds *bounds);

#endif
