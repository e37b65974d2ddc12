/* SPDX-License-Identifier: MIT */
/*
 * The functions that patched entries jump to. An outermost call of a heap function becomes one event:
 *
 *     enter   whose call it is; the guard; the time; what call is under way
 *     call    the moved instructions and the rest of the function
 *     leave   the time; the stack; the record; commit; the guard
 *
 * A Free's record is written before the call, since its block may belong to another thread the moment it is free. It is
 * committed after the call, when its duration is known.
 *
 * A call that finds the guard set is one of three. A call that the allocator makes of itself is no event. A signal
 * handler's call is an event in the thread's signal stream. The guard of a call that will never return (longjmp,
 * cancellation) is discarded. A call of xheap/heap.h is an event under a guard, too.
 */
#include "recorder/hooks.h"

#include "recorder/python_objects.h"

/* Return whether a call is no event: glibc frees blocks that the program had freed before. */
static inline int is_silent(const struct hook_context *context, uint64_t frame)
{
	uint64_t pc = ((const uint64_t *)frame)[1];
	if (LIKELY(pc - context->silent_first >= context->silent_span))
		return 0;
	return pc - context->silent_low < context->silent_bytes || pc - context->silent_low2 < context->silent_bytes2;
}

/* An allocating function's arguments, and what of them the event names. */
struct request {
	uint64_t a, b, c; /* as given */
	uint64_t block;   /* to free */
	uint64_t usable;  /* of it, if the call says so; 0: it does not */
	uint64_t size, argument, argument2, previous;
	uint8_t flags, lost;
	uint32_t stack_option;
};

/* Return the event of a call that returned `address`, or NULL. */
static inline __attribute__((always_inline)) struct event event_of(const struct request *request, uint64_t address,
								   int has_failed)
{
	struct event event;
	event.address = address;
	event.size = request->size;
	event.previous = request->previous;
	event.argument = request->argument;
	event.argument2 = request->argument2;
	event.flags = request->flags;
	event.lost = request->lost;
	event.usable = event.slack = 0;
	event.heap = 0;
	event.error = 0;
	if (UNLIKELY(has_failed)) {
		event.flags |= RECORD_FAILED;
		event.error = NO_MEMORY;
	}
	return event;
}

/* Return whether NULL is a failure, which leaves the block alone. For a resize to no bytes it is a free if the
   allocator frees then. */
static inline int is_failure(const struct request *request)
{
	return request->size != 0 || !request->previous;
}

__attribute__((noinline)) static uint64_t allocate_nothing(const struct call *call, const struct hook_context *context,
							   const struct request *request, uint16_t heap)
{
	struct event event = event_of(request, 0, is_failure(request));
	event.heap = heap;
	leave_with_block(*call, context, event, request->stack_option, 1);
	return 0;
}

/* Make a call that has begun, and end it, for functions that return the block. */
static inline __attribute__((always_inline)) uint64_t allocate(struct call call, struct request request,
							       const struct hook_context *context, uint64_t function,
							       int is_special)
{
	if (request.flags & RECORD_REALLOC)
		call_announce_resize(&call, context, request.previous, request.size);
	else
		call_announce(&call, context, request.size);
	/* Of a block that a realloc frees, only now. */
	uint16_t heap = request.previous ? heap_of(call.thread, context, request.previous) : 0;
	if (UNLIKELY(call.options & OPTION_MEASURE) && request.previous && context->function == FUNCTION_REALLOC) {
		request.argument2 = measure(context, request.previous);
		request.flags |= RECORD_ARGUMENT2;
	}
	uint64_t result = call_original(&call, function, request.a, request.b, request.c);
	if (UNLIKELY(!call_is_ours(&call)))
		return result;
	if (UNLIKELY(!result) && !is_special) {
		struct call failed_call = whole_call(&call);
		struct request failed = request;
		return allocate_nothing(&failed_call, context, &failed, heap);
	}
	struct event event = event_of(&request, result, !result && is_failure(&request));
	event.heap = heap;
	leave_with_block(call, context, event, request.stack_option, is_special);
	return result;
}

void sample_keep(const struct hook_context *context, uint64_t address)
{
	if (address && !sample_add(context->recorder, address))
		__atomic_fetch_add(&context->recorder->region->sample_unwatched, 1, __ATOMIC_RELAXED);
}

/*
 * Make a call of a session that samples, after its beginning.
 * A resize is recorded as follows. If the new block is in the sample, the resize is recorded as it is. Otherwise, if
 * the old block was in the sample, it is recorded as a resize to nothing, which ends that block.
 */
static uint64_t allocate_sampled(const struct call *call, const struct request *request,
				 const struct hook_context *context, uint64_t function)
{
	int is_sampled = sample_takes(call->thread, request->size);
	int was_sampled = request->previous && sample_drop(context->recorder, request->previous);
	uint64_t result;
	if (is_sampled) {
		result = allocate(*call, *request, context, function, 1);
		sample_keep(context, result);
	} else {
		uint16_t heap = was_sampled ? heap_of(call->thread, context, request->previous) : 0;
		result = ((heap_call *)function)(request->a, request->b, request->c, 0);
		if (UNLIKELY(!call_is_ours(call)))
			return result;
		if (!was_sampled || (!result && is_failure(request))) {
			call_end(call);
		} else {
			struct event event = event_of(request, 0, 0);
			event.heap = heap;
			leave_with_block(*call, context, event, request->stack_option, 1);
		}
	}
	/* The old block is still there. */
	if (was_sampled && !result && is_failure(request))
		sample_keep(context, request->previous);
	return result;
}

__attribute__((noinline)) static uint64_t allocate_special(struct request *request, const struct hook_context *context,
							   uint64_t frame, uint64_t function)
{
	struct call call;
	if (!enter_special(&call, context, frame))
		return ((heap_call *)function)(request->a, request->b, request->c, 0);
	uint64_t result = call.options & OPTION_SAMPLE ? allocate_sampled(&call, request, context, function)
						       : allocate(call, *request, context, function, 1);
	if (call.is_signal)
		call.thread->nested_block = result;
	return result;
}

/* Do all of an allocating function. */
static inline __attribute__((always_inline)) uint64_t hook_alloc(struct request request,
								 const struct hook_context *context, uint64_t frame,
								 uint64_t function)
{
	struct call call;
	int how = enter(&call, context, frame);
	if (LIKELY(how == CALL_IS_PLAIN))
		return allocate(call, request, context, function, 0);
	if (how == CALL_PASSES)
		return ((heap_call *)function)(request.a, request.b, request.c, 0);
	struct request special = request;
	return allocate_special(&special, context, frame, function);
}

/* The size of one element cannot be computed from a product of 0 or an overflow: then it is recorded, too. */
static inline uint8_t whole_size_flag(uint64_t bytes)
{
	return UNLIKELY(bytes - 1 >= UINT64_MAX - 1) ? RECORD_ARGUMENT2 : 0;
}

#define ALLOC(...) \
	hook_alloc( \
		(struct request){.a = a, .b = b, .lost = LOST_ALLOC, .stack_option = OPTION_STACK_ALLOC, __VA_ARGS__}, \
		context, FRAME, context->original)
#define RESIZE(more, ...) \
	hook_alloc((struct request){.a = a, \
				    .b = b, \
				    .c = c, \
				    .previous = a, \
				    .lost = LOST_REALLOC, \
				    .stack_option = OPTION_STACK_REALLOC, \
				    .flags = RECORD_REALLOC | (more), \
				    __VA_ARGS__}, \
		   context, FRAME, context->original)

HOOK hook_malloc(PARAMETERS)
{
	return ALLOC(.size = a);
}

HOOK hook_calloc(PARAMETERS)
{
	uint64_t size = product(a, b);
	return ALLOC(.c = c, .size = size, .argument = a, .argument2 = b,
		     .flags = RECORD_ARGUMENT | whole_size_flag(size));
}

HOOK hook_aligned(PARAMETERS)
{
	return ALLOC(.size = b, .argument = a, .flags = RECORD_ARGUMENT);
}

HOOK hook_new_aligned(PARAMETERS)
{
	return ALLOC(.c = c, .size = a, .argument = b, .flags = RECORD_ARGUMENT);
}

HOOK hook_realloc(PARAMETERS)
{
	return RESIZE(0, .size = b);
}

HOOK hook_realloc_extended(PARAMETERS)
{
	return RESIZE(RECORD_ARGUMENT, .size = b, .argument = c);
}

HOOK hook_reallocarray(PARAMETERS)
{
	uint64_t size = product(b, c);
	return RESIZE(RECORD_ARGUMENT | whole_size_flag(size), .size = size, .argument = b, .argument2 = c);
}

/* posix_memalign(&pointer, alignment, size) returns the block through its first argument, and an error number. */
HOOK hook_posix_memalign(PARAMETERS)
{
	struct call call;
	heap_call *original = (heap_call *)context->original;
	/* Seldom called: the special way serves for all. */
	int how = enter(&call, context, FRAME);
	if (how == CALL_IS_PLAIN)
		call = whole_call(&call);
	if (how == CALL_PASSES || (how == CALL_IS_SPECIAL && !enter_special(&call, context, FRAME)))
		return original(a, b, c, 0);
	int is_sampling = call.options & OPTION_SAMPLE, is_taken = !is_sampling || sample_takes(call.thread, c);
	call_announce(&call, context, c);
	uint64_t result = call_original(&call, context->original, a, b, c);
	if (UNLIKELY(!call_is_ours(&call)))
		return result;
	if (!is_taken) {
		call_end(&call);
		return result;
	}
	struct request request = {.size = c,
				  .argument = b,
				  .argument2 = a,
				  .flags = RECORD_ARGUMENT | RECORD_ARGUMENT2,
				  .lost = LOST_ALLOC};
	int has_failed = (uint32_t)result != 0;
	struct event event = event_of(&request, has_failed ? 0 : *(const uint64_t *)a, has_failed);
	if (has_failed)
		event.error = (uint32_t)result;
	leave_with_block(call, context, event, OPTION_STACK_ALLOC, 1);
	if (is_sampling)
		sample_keep(context, event.address);
	return result;
}

/* Call an operator new whose heap has refused the block, after handling_begin(). An exception of a new handler passes
   this frame: the guard that it leaves is discarded by the next call. */
__attribute__((noinline)) static uint64_t new_by_handlers(uint64_t a, uint64_t b, uint64_t c,
							  const struct hook_context *context, uint64_t frame)
{
	struct call call;
	struct recorder *recorder = context->recorder;
	heap_call *original = (heap_call *)context->original;
	if (!enter_special(&call, context, frame)) {
		handling_end(recorder);
		return original(a, b, c, 0);
	}
	struct thread *thread = call.thread;
	thread->nested_block = 0;
	call_announce(&call, context, a);
	int is_signal = (int)call.is_signal;
	if (is_signal) {
		/* Within a call that is in the signal stream, the handlers' calls need that stream. */
		handling_end(recorder);
		call_end(&call);
	} else {
		thread->handling = frame;
	}
	uint64_t result = call_original(&call, context->original, a, b, c);
	if (thread->handling == frame) {
		thread->handling = 0;
		handling_end(recorder);
	}
	if (UNLIKELY(is_signal ? !enter_special(&call, context, frame) : !call_is_ours(&call)))
		return result;
	int is_sampling = call.options & OPTION_SAMPLE, is_aligned = context->function == FUNCTION_NEW_ALIGNED;
	/* A static program's allocator may have called its malloc, which is then an event. */
	if (!result || result == thread->nested_block || (is_sampling && !sample_takes(thread, a))) {
		call_end(&call);
		return result;
	}
	struct request request = {
		.size = a, .argument = b, .flags = is_aligned ? RECORD_ARGUMENT : 0, .lost = LOST_ALLOC};
	leave_with_block(call, context, event_of(&request, result, 0), OPTION_STACK_ALLOC, 1);
	if (is_sampling)
		sample_keep(context, result);
	return result;
}

/*
 * An operator new that finds no memory calls the program's new handlers, which may free blocks, leave by an exception,
 * or never return. So a function of the same heap that calls none is tried first, as an event. Only if it returns NULL
 * the operator itself is called: then the program's calls under it are events, too, and a block is one more event.
 * Both ways end in tail calls: where no exception can pass, no frame of the recorder may lie on the stack.
 */
#define HANDLED_NEW(first, second, ...) \
	uint64_t result = hook_alloc((struct request){.a = first, \
						      .b = second, \
						      .c = c, \
						      .size = a, \
						      .lost = LOST_ALLOC, \
						      .stack_option = OPTION_STACK_ALLOC, \
						      __VA_ARGS__}, \
				     context, FRAME, context->handlerless); \
	if (LIKELY(result)) \
		return result; \
	if (!(LOAD(&context->recorder->region->options) & OPTION_ENABLED) || !handling_begin(context->recorder)) \
		return ((heap_call *)context->original)(a, b, c, 0); \
	return new_by_handlers(a, b, c, context, FRAME)

HOOK hook_handled_new(PARAMETERS)
{
	HANDLED_NEW(a, b, .argument = 0);
}

HOOK hook_handled_new_aligned(PARAMETERS)
{
	HANDLED_NEW(b, a, .argument = b, .flags = RECORD_ARGUMENT);
}

/* Make a call that has begun, and end it, for functions that free a block. */
static inline __attribute__((always_inline)) uint64_t give_back(struct call call, struct request request,
								const struct hook_context *context, int is_special)
{
	struct event event = event_of(&request, request.block, 0);
	event.ticks = call.begin;
	event.duration = RECORD_NO_DURATION;
	/* The head of a block that is none may not be readable: then the process ends here, as it would in the call. */
	call_announce(&call, context, request.block);
	event.heap = heap_of(call.thread, context, request.block);
	if (UNLIKELY(call.options & OPTION_MEASURE) && !request.usable)
		event_set_usable(&event, measure(context, request.block));
	else if (request.size)
		event_set_usable(&event, request.usable);
	uint32_t bytes;
	if (is_special) {
		struct call special_call = call;
		struct event special_event = event;
		bytes = event_write_special(&special_call, context, &special_event, OPTION_STACK_FREE);
	} else {
		bytes = event_write_plain(call, context, event, OPTION_STACK_FREE);
	}
	struct region_slot *slot = call.thread->slot;
	if (!is_special || !call.is_signal)
		STORE_RELEASE(&slot->pending, bytes);
	uint64_t result = call_original(&call, context->original, request.a, request.b, request.c);
	if (UNLIKELY(!call_is_ours(&call)))
		return result;
	struct event_stream *stream = stream_of(&call);
	if (LIKELY(bytes)) {
		if (LIKELY(call.options & OPTION_DURATION)) {
			uint64_t now = is_special ? clock_of(context->recorder, call.options) : cpu_ticks();
			record_set_duration(stream->write, region_duration_encode(now - call.begin));
		}
		stream->write += bytes;
		stream_commit(stream);
		if (UNLIKELY(!stream->plain_limit))
			stream_hand_over(call.thread, stream);
	}
	if (!is_special || !call.is_signal)
		STORE(&slot->pending, 0);
	call_end(&call);
	return result;
}

__attribute__((noinline)) static uint64_t give_back_special(struct request *request, const struct hook_context *context,
							    uint64_t frame)
{
	struct call call;
	if (!enter_special(&call, context, frame))
		return ((heap_call *)context->original)(request->a, request->b, request->c, 0);
	if ((call.options & OPTION_SAMPLE) && !sample_drop(context->recorder, request->block)) {
		uint64_t result = ((heap_call *)context->original)(request->a, request->b, request->c, 0);
		if (call_is_ours(&call))
			call_end(&call);
		return result;
	}
	return give_back(call, *request, context, 1);
}

static inline __attribute__((always_inline)) uint64_t hook_give_back(struct request request,
								     const struct hook_context *context, uint64_t frame)
{
	struct call call;
	int how = !request.block || UNLIKELY(is_silent(context, frame)) ? CALL_PASSES : enter(&call, context, frame);
	if (LIKELY(how == CALL_IS_PLAIN))
		return give_back(call, request, context, 0);
	if (how == CALL_PASSES)
		return ((heap_call *)context->original)(request.a, request.b, request.c, 0);
	struct request special = request;
	return give_back_special(&special, context, frame);
}

#define GIVE_BACK(more, ...) \
	hook_give_back( \
		(struct request){ \
			.a = a, .b = b, .block = a, .flags = RECORD_FREE | (more), .lost = LOST_FREE, __VA_ARGS__}, \
		context, FRAME)

HOOK hook_free(PARAMETERS)
{
	return GIVE_BACK(0, .size = 0);
}

HOOK hook_free_sized(PARAMETERS)
{
	return GIVE_BACK(0, .size = b);
}

HOOK hook_free_aligned_sized(PARAMETERS)
{
	return GIVE_BACK(RECORD_ARGUMENT, .c = c, .size = c, .argument = b);
}

HOOK hook_delete_aligned(PARAMETERS)
{
	return GIVE_BACK(RECORD_ARGUMENT, .c = c, .argument = b);
}

HOOK hook_delete_sized_aligned(PARAMETERS)
{
	return GIVE_BACK(RECORD_ARGUMENT, .c = c, .size = b, .argument = c);
}

/* arena_free(context, arena, size), of Python's allocator. So it is known how large a block was that an attach did not
   find. */
HOOK hook_arena_free(PARAMETERS)
{
	return hook_give_back((struct request){.a = a,
					       .b = b,
					       .c = c,
					       .block = b,
					       .size = c,
					       .usable = c,
					       .flags = RECORD_FREE,
					       .lost = LOST_FREE},
			      context, FRAME);
}

/* ---- arenas of a process whose Python objects are recorded ---- */

HOOK hook_python_arena_alloc(PARAMETERS)
{
	uint64_t result = ALLOC(.size = b, .argument = a, .flags = RECORD_ARGUMENT);
	objects_arena_begin(context, result);
	return result;
}

/* Of an arena from before the attach, objects may be recorded that were counted by themselves: the arena is not. */
HOOK hook_python_arena_free(PARAMETERS)
{
	if (UNLIKELY(!objects_arena_end(context->recorder, b, c)))
		return ((heap_call *)context->original)(a, b, c, 0);
	return hook_arena_free(a, b, c, d, context);
}
