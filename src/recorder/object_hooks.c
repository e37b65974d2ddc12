/* SPDX-License-Identifier: MIT */
/*
 * Hooks of an allocator's heap objects, such as mimalloc's: functions that make and end a heap, and functions that take
 * their blocks from the heap that is their first argument. The program frees such a block as every other one. They are
 * called less often than malloc: the special way serves for all calls.
 */
#include "recorder/hooks.h"

/* A call that returns a block, without its result. */
struct object_call {
	uint64_t a, b, c, d;
	uint64_t size, previous, argument, argument2;
	uint8_t flags, lost;
	uint32_t stack_option;
};

static inline uint64_t object_key(uint64_t heap)
{
	return (heap & HEAP_HANDLE_BITS) | (uint64_t)HEAP_OBJECT << HEAP_KEY_KIND;
}

/* Begin a call. Return 0 if it is no event. */
static int object_enter(struct call *call, const struct hook_context *context, uint64_t frame)
{
	return LOAD(&context->recorder->region->options) & OPTION_ENABLED && enter_special(call, context, frame);
}

static uint64_t object_original(const struct hook_context *context, const struct object_call *how)
{
	return ((heap_call *)context->original)(how->a, how->b, how->c, how->d);
}

__attribute__((noinline)) static uint64_t object_allocate(const struct hook_context *context,
							  const struct object_call *how, uint64_t frame)
{
	struct recorder *recorder = context->recorder;
	struct hook_context own = *context;
	struct call call;
	if (!object_enter(&call, context, frame))
		return object_original(context, how);
	own.heap_key = object_key(how->a);
	int is_sampling = (call.options & OPTION_SAMPLE) != 0;
	int is_taken = !is_sampling || sample_takes(call.thread, how->size);
	int was_taken = is_sampling && how->previous && sample_drop(recorder, how->previous);
	call_announce(&call, context, how->size);
	uint64_t result = object_original(context, how);
	if (!call_is_ours(&call))
		return result;
	int has_failed = !result && (how->size || !how->previous);
	struct event event = {.address = result,
			      .previous = how->previous,
			      .size = how->size,
			      .argument = how->argument,
			      .argument2 = how->argument2,
			      .flags = how->flags | (has_failed ? RECORD_FAILED : 0),
			      .error = has_failed ? NO_MEMORY : 0,
			      .lost = how->lost,
			      .heap = heap_of_key(call.thread, &own, own.heap_key)};
	if (is_taken) {
		leave_with_block(call, &own, event, how->stack_option, 1);
		if (is_sampling)
			sample_keep(context, result);
	} else if (was_taken && !has_failed) {
		/* A resize to nothing: the end of a block of the sample. */
		event.address = 0;
		leave_with_block(call, &own, event, how->stack_option, 1);
	} else {
		call_end(&call);
	}
	/* The old block is still there. */
	if (was_taken && has_failed)
		sample_keep(context, how->previous);
	return result;
}

#define OBJECT_CALL(...) \
	object_allocate(context, &(const struct object_call){.a = a, .b = b, .c = c, .d = d, __VA_ARGS__}, FRAME)
#define OBJECT_ALLOC(...) OBJECT_CALL(.lost = LOST_ALLOC, .stack_option = OPTION_STACK_ALLOC, __VA_ARGS__)
#define OBJECT_RESIZE(more, ...) \
	OBJECT_CALL(.previous = b, .lost = LOST_REALLOC, .stack_option = OPTION_STACK_REALLOC, \
		    .flags = RECORD_REALLOC | (more), __VA_ARGS__)

/* As in hooks.c: the size of one element cannot be computed from a product of 0 or an overflow. */
static uint8_t whole_size(uint64_t bytes)
{
	return bytes - 1 >= UINT64_MAX - 1 ? RECORD_ARGUMENT2 : 0;
}

HOOK hook_object_malloc(PARAMETERS)
{
	return OBJECT_ALLOC(.size = b);
}

HOOK hook_object_calloc(PARAMETERS)
{
	uint64_t size = product(b, c);
	return OBJECT_ALLOC(.size = size, .argument = b, .argument2 = c, .flags = RECORD_ARGUMENT | whole_size(size));
}

HOOK hook_object_aligned(PARAMETERS)
{
	return OBJECT_ALLOC(.size = b, .argument = c, .flags = RECORD_ARGUMENT);
}

HOOK hook_object_realloc(PARAMETERS)
{
	return OBJECT_RESIZE(0, .size = c);
}

HOOK hook_object_reallocarray(PARAMETERS)
{
	uint64_t size = product(c, d);
	return OBJECT_RESIZE(RECORD_ARGUMENT | whole_size(size), .size = size, .argument = c, .argument2 = d);
}

HOOK hook_object_realloc_aligned(PARAMETERS)
{
	return OBJECT_RESIZE(RECORD_ARGUMENT, .size = c, .argument = d);
}

/* ---- the heaps themselves ---- */

static void object_write(struct call *call, const struct hook_context *context, uint64_t heap, struct event *event,
			 uint32_t stack_option)
{
	event->duration = RECORD_NO_DURATION;
	event->heap = heap ? (uint16_t)heap_lookup(call->thread, context, object_key(heap)) : REGION_HEAP_NONE;
	event_set_usable(event, 0);
	uint32_t bytes = event_write_special(call, context, event, stack_option);
	if (!bytes)
		return;
	struct event_stream *stream = stream_of(call);
	stream->write += bytes;
	stream_commit(stream);
	if (!stream->plain_limit)
		stream_hand_over(call->thread, stream);
}

/* A heap exists when its function has returned. In a session that samples, creations are no events. */
__attribute__((noinline)) static uint64_t object_make(const struct hook_context *context, const struct object_call *how,
						      uint64_t frame)
{
	struct call call;
	if (!object_enter(&call, context, frame))
		return object_original(context, how);
	uint64_t result = object_original(context, how);
	if (!call_is_ours(&call))
		return result;
	struct event event = {.address = result,
			      .argument = how->argument,
			      .flags = how->flags | (result ? 0 : RECORD_FAILED),
			      .error = result ? 0 : NO_MEMORY,
			      .lost = LOST_ALLOC,
			      .ticks = clock_of(context->recorder, call.options)};
	if (!(call.options & OPTION_SAMPLE))
		object_write(&call, context, result, &event, OPTION_STACK_CREATE);
	call_end(&call);
	return result;
}

HOOK hook_object_new(PARAMETERS)
{
	return object_make(context, &(const struct object_call){.a = a, .b = b, .c = c, .d = d}, FRAME);
}

HOOK hook_object_new_in(PARAMETERS)
{
	return object_make(
		context,
		&(const struct object_call){.a = a, .b = b, .c = c, .d = d, .argument = a, .flags = RECORD_ARGUMENT},
		FRAME);
}

/* A heap ends before the call: another thread may get its memory in it. A deletion ends no block, so a session that
   samples does not record it. */
__attribute__((noinline)) static uint64_t object_end(const struct hook_context *context, const struct object_call *how,
						     uint64_t frame)
{
	struct call call;
	if (!how->a || !object_enter(&call, context, frame))
		return object_original(context, how);
	struct event event = {.address = how->a, .lost = LOST_FREE, .ticks = call.begin};
	if (!(call.options & OPTION_SAMPLE) || context->function == FUNCTION_OBJECT_DESTROY)
		object_write(&call, context, how->a, &event, OPTION_STACK_DESTROY);
	uint64_t result = object_original(context, how);
	if (call_is_ours(&call))
		call_end(&call);
	return result;
}

HOOK hook_object_delete(PARAMETERS)
{
	return object_end(context, &(const struct object_call){.a = a, .b = b, .c = c, .d = d}, FRAME);
}

HOOK hook_object_destroy(PARAMETERS)
{
	return object_end(context, &(const struct object_call){.a = a, .b = b, .c = c, .d = d}, FRAME);
}

/* ---- the same in a session that samples ---- */

#define SAMPLED(name) \
	HOOK sampled_object_##name(PARAMETERS) \
	{ \
		return hook_object_##name(a, b, c, d, context); \
	}

SAMPLED(new)
SAMPLED(new_in)
SAMPLED(delete)
SAMPLED(destroy)
SAMPLED(malloc)
SAMPLED(calloc)
SAMPLED(aligned)
SAMPLED(realloc)
SAMPLED(reallocarray)
SAMPLED(realloc_aligned)
