/* SPDX-License-Identifier: MIT */
/**
 * Checks that walk a whole structure: X_is_valid() looks at every invariant of an X and changes nothing. Unit tests
 * call them after each step. The code itself calls them, by CHECK_VALID(), in a build that asks for it (meson's option
 * `checks`, or buildtype=debug): they take far longer than the step before them.
 */
#ifndef XHEAP_BASE_CHECK_H
#define XHEAP_BASE_CHECK_H

#include <assert.h>

#ifdef XHEAP_CHECKS
#define CHECK_VALID(is_valid) assert(is_valid)
#else
#define CHECK_VALID(is_valid) ((void)sizeof(is_valid))
#endif

#endif
