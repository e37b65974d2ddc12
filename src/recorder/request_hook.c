/* SPDX-License-Identifier: MIT */
/* Requests to Valgrind about a program's own heaps (base/requests.h), as calls of xheap/heap.h. */
#include "base/requests.h"
#include "recorder/annotations.h"

static const struct heap_request requests[REQUEST_SPAN] = {
#define X(number, name, function, heap, block, previous, size) \
	[(number)-REQUEST_FIRST] = {FUNCTION_##function, heap, block, previous, size},
	HEAP_REQUESTS(X)
#undef X
};

/* Return an argument of the request. It may lie where the frame is now, in the two words that a function may keep below
   the stack pointer. */
static uint64_t request_argument(const uint64_t *request, uint64_t frame, unsigned which)
{
	enum { FRAME_BYTES = 16 };
	uint64_t at = (uint64_t)&request[which];
	if (!which)
		return 0;
	return *(const uint64_t *)(at - frame < FRAME_BYTES ? at - REQUEST_SAVED_BYTES : at);
}

/* Continue a pool under another handle: it stays the same heap. */
static void pool_move(const struct hook_context *context, uint64_t from, uint64_t to)
{
	struct thread *thread = thread_current(context->recorder);
	if (!thread || !from || !to)
		return;
	const struct heap_place *old = heap_place_find(thread, context, annotated_key(from) | HEAP_CURRENT);
	struct heap_place *place = heap_place_find(thread, context, annotated_key(to) | HEAP_CURRENT);
	if (!old || !place)
		return;
	STORE(&place->index, LOAD(&old->index));
	STORE(&place->sampled, LOAD(&old->sampled));
}

/* Complete a request's event like that of the equal call of xheap/heap.h. Return 0 if it is no event. */
static int request_event(struct annotation *annotation, uint8_t function)
{
	struct event *event = &annotation->event;
	switch (function) {
	case FUNCTION_HEAP_CREATE:
		annotation->stack_option = OPTION_STACK_CREATE;
		return 1;
	case FUNCTION_HEAP_DESTROY:
	case FUNCTION_HEAP_RESET:
		event->lost = LOST_FREE;
		annotation->stack_option = OPTION_STACK_DESTROY;
		/* A pool trimmed to nothing is empty. A pool that keeps a part does not say which blocks are gone. */
		return !event->size;
	case FUNCTION_HEAP_ALLOC:
		annotation->stack_option = OPTION_STACK_ALLOC;
		return event->address != 0;
	case FUNCTION_HEAP_FREE:
		event->flags = RECORD_FREE;
		event->lost = LOST_FREE;
		annotation->stack_option = OPTION_STACK_FREE;
		return event->address != 0;
	case FUNCTION_HEAP_REALLOC:
		event->flags = RECORD_REALLOC;
		event->lost = LOST_REALLOC;
		annotation->stack_option = OPTION_STACK_REALLOC;
		return event->address && event->previous;
	default:
		return 0;
	}
}

/* Return whether a session that samples can pass over the request, as over nearly all blocks. */
static int request_passes(const struct hook_context *context, const struct annotation *annotation, uint8_t function)
{
	struct thread *thread = thread_at_hand(context->recorder, cpu_thread_pointer());
	uint64_t length = sample_length(annotation->event.size);
	if (function == FUNCTION_HEAP_FREE)
		return !annotation_may_hold(context->recorder, annotation->key, annotation->event.address);
	if (function != FUNCTION_HEAP_ALLOC || !thread || length > thread->sample_left)
		return 0;
	thread->sample_left -= length;
	return 1;
}

/* Handle a request. contexts: one for each number. The stub has checked that the number is one of them. */
__attribute__((used, visibility("hidden"))) void hook_request(const uint64_t *request,
							      const struct hook_context *contexts, uint64_t frame)
{
	enum { NO_HANDLE = 1 };
	uint64_t number = request[0] - REQUEST_FIRST;
	const struct hook_context *context = &contexts[number];
	const struct heap_request *how = &requests[number];
	uint32_t options = LOAD(&contexts->recorder->region->options) & contexts->recorder->options_mask;
	if (!(options & OPTION_ENABLED))
		return;
	if (number == REQUEST_MOVE_POOL - REQUEST_FIRST)
		pool_move(contexts, request_argument(request, frame, 1), request_argument(request, frame, 2));
	if (!how->block)
		return;
	uint64_t heap = how->heap ? request_argument(request, frame, how->heap) : NO_HANDLE;
	struct annotation annotation = {.key = current_key(heap)};
	annotation.event.address = request_argument(request, frame, how->block);
	annotation.event.previous = request_argument(request, frame, how->previous);
	annotation.event.size = request_argument(request, frame, how->size);
	annotation.event.lost = LOST_ALLOC;
	if (!heap || !request_event(&annotation, how->function) ||
	    (options & OPTION_SAMPLE && request_passes(context, &annotation, how->function)))
		return;
	if (how->function == FUNCTION_HEAP_CREATE)
		heap_begin(context, heap, 0);
	annotate_special(context, &annotation, frame);
}
