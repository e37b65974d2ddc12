/* SPDX-License-Identifier: MIT */
/*
 * The oracle for dynamic programs: LD_PRELOAD=oracle.so logs every call of the malloc family (calls.h) and passes it
 * on to whatever allocator comes next. It exports only what glibc offers, so that nobody finds a function more.
 */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"

#define OUR(name) oracle_##name

#pragma GCC visibility push(hidden)
#include "allocator.h"
#pragma GCC visibility pop

/* The log knows of a call before xheap does, and longer. */
EXPORT_ALLOCATOR(oracle_);
