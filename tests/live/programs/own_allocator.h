/* SPDX-License-Identifier: MIT */
/**
 * An allocator of a program's own: malloc, calloc, realloc, free, aligned_alloc over one static array. Lock-free and
 * safe in signal handlers, and a call that is left by a jump does no harm: blocks are carved off and reused only
 * by exact exchange of a size class's list head with a tag.
 */
#ifndef OWN_ALLOCATOR_H
#define OWN_ALLOCATOR_H

/** Spin this often inside malloc, so that signals hit it. */
extern volatile int own_allocator_delay;

/** 1 while a call of malloc is on its way. */
extern volatile int own_allocator_inside;

#endif
