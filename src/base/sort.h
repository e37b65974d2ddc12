/* SPDX-License-Identifier: MIT */
/** A sort that can be left: qsort_r() cannot. */
#ifndef XHEAP_BASE_SORT_H
#define XHEAP_BASE_SORT_H

#include "base/cancel.h"

/** Sort pointers as qsort_r() does; equal ones keep their order. compare() gets the addresses of two of them. Return
    soon after *is_cancelled is set, with all of them in any order. */
void pointers_sort(void **items, size_t count, int (*compare)(const void *a, const void *b, void *context),
		   void *context, const bool *is_cancelled);

#endif
