/* SPDX-License-Identifier: MIT */
/** Calls of xheap/heap.h and requests to Valgrind, as events. No function is called: a heap of the program's own has
    changed. */
#ifndef XHEAP_RECORDER_ANNOTATIONS_H
#define XHEAP_RECORDER_ANNOTATIONS_H

#include "recorder/hooks.h"

/* The event of an annotation, except for the time and the heap. */
struct annotation {
	uint64_t key; /* of the heap; 0: it has none */
	struct event event;
	uint32_t stack_option;
};

/** Return the key of an annotated heap by its handle. */
static inline uint64_t annotated_key(uint64_t heap)
{
	return (heap & HEAP_HANDLE_BITS) | (uint64_t)HEAP_ANNOTATED << HEAP_KEY_KIND;
}

/** Return the key by which the heap is found that was created last with the handle. */
static inline uint64_t current_key(uint64_t heap)
{
	return annotated_key(heap) | HEAP_CURRENT;
}

/** Record the event of a call that has begun, and end the call. */
static inline __attribute__((always_inline)) void annotate_in(struct call call, const struct hook_context *context,
							      const struct annotation *annotation, int is_special)
{
	struct event event = annotation->event;
	event.ticks = call.begin;
	event.duration = RECORD_NO_DURATION;
	event.heap = (uint16_t)heap_lookup(call.thread, context, annotation->key);
	event_set_usable(&event, 0);
	uint32_t bytes;
	if (is_special) {
		struct call special_call = call;
		bytes = event_write_special(&special_call, context, &event, annotation->stack_option);
	} else {
		bytes = event_write_plain(call, context, event, annotation->stack_option);
	}
	if (LIKELY(bytes)) {
		struct event_stream *stream = stream_of(&call);
		stream->write += bytes;
		stream_commit(stream);
		if (UNLIKELY(!stream->plain_limit))
			stream_hand_over(call.thread, stream);
	}
	call_end(&call);
}

/** Record the event of a call that enter() did not take for a plain one. */
void annotate_special(const struct hook_context *context, struct annotation *annotation, uint64_t frame);

/** Begin a heap: give it a row. name: address of its name in the program, 0 without one. */
void heap_begin(const struct hook_context *context, uint64_t heap, uint64_t name);

/** Return whether a block of the heap with this key may be in the sample. */
int annotation_may_hold(struct recorder *recorder, uint64_t key, uint64_t address);

#endif
