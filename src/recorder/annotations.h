/* SPDX-License-Identifier: MIT */
/** Calls of xheap/heap.h and requests to Valgrind, as events. No function is called: a heap of the program's own has
    changed. */
#ifndef XHEAP_RECORDER_ANNOTATIONS_H
#define XHEAP_RECORDER_ANNOTATIONS_H

#include "recorder/hooks.h"

/* The event of an annotation, except for the time and the heap. */
struct annotation {
	uint64_t heap;
	struct event event;
	uint32_t stack_option;
};

/** Return the key of an annotated heap by its handle. */
static inline uint64_t annotated_key(uint64_t heap)
{
	return (heap & HEAP_HANDLE_BITS) | (uint64_t)HEAP_ANNOTATED << HEAP_KEY_KIND;
}

/** Record the event of a call that enter() did not take for a plain one. */
void annotate_special(const struct hook_context *context, struct annotation *annotation, uint64_t frame);

/** Begin a heap: give it a row. name: address of its name in the program, 0 without one. */
void heap_begin(const struct hook_context *context, uint64_t heap, uint64_t name);

/** Return whether a block may be in the sample. */
int annotation_may_hold(struct recorder *recorder, uint64_t heap, uint64_t address);

#endif
