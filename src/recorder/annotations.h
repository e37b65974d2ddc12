/* SPDX-License-Identifier: MIT */
/** Calls of xheap/heap.h, and what programs tell Valgrind, as events: no function is called, a heap of the program's
    own has changed. */
#ifndef XHEAP_RECORDER_ANNOTATIONS_H
#define XHEAP_RECORDER_ANNOTATIONS_H

#include "recorder/hooks.h"

/* What a call tells: its event, but for the time and the heap. */
struct annotation {
	uint64_t heap;
	struct event event;
	uint32_t stack_option;
};

static inline uint64_t annotated_key(uint64_t heap)
{
	return (heap & HEAP_HANDLE_BITS) | (uint64_t)HEAP_ANNOTATED << HEAP_KEY_KIND;
}

/** Record the event of a call that enter() did not take for a plain one. */
void annotate_special(const struct hook_context *context, struct annotation *annotation, uint64_t frame);

/** A heap begins: give it a row. name: address of its name in the program, 0 without one. */
void heap_begin(const struct hook_context *context, uint64_t heap, uint64_t name);

/** Whether a block may be one of the sample. */
int annotation_may_hold(struct recorder *recorder, uint64_t heap, uint64_t address);

#endif
