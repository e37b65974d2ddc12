/* SPDX-License-Identifier: MIT */
/*
 * Hooks of a session that samples. They do what is needed for a call that is not recorded, as nearly all are not; the
 * rest is for the usual hook. The guard stands for what the allocator calls of itself, which is not to be counted
 * again.
 */
#include "recorder/hooks.h"

#define SAMPLED(name, size, previous, function, first, second, answer) \
	uint64_t hook_##name(PARAMETERS); \
	HOOK sampled_##name(PARAMETERS) \
	{ \
		struct recorder *recorder = context->recorder; \
		struct thread *thread = thread_at_hand(recorder, cpu_thread_pointer()); \
		uint64_t length = sample_length(size); \
		if (UNLIKELY(!thread) || UNLIKELY(thread->guard) || UNLIKELY(length > thread->sample_left) || \
		    ((previous) && UNLIKELY(sample_may_hold(recorder, previous)))) \
			return hook_##name(a, b, c, d, context); \
		thread->sample_left -= length; \
		thread->guard = FRAME; \
		__asm__ volatile("" ::: "memory"); \
		uint64_t result = ((heap_call *)(function))(first, second, c, 0); \
		__asm__ volatile("" ::: "memory"); \
		/* It is this call's or discarded: each other setter has cleared it. A forked child has none. */ \
		thread->guard = 0; \
		return answer; \
	}

#define SAMPLED_ALLOC(name, size, previous) SAMPLED(name, size, previous, context->original, a, b, result)

/* What calls new handlers must not be called here: under this guard, their calls would not be recorded. */
#define SAMPLED_NEW(name, first, second) \
	SAMPLED(name, a, 0, context->handlerless, first, second, \
		LIKELY(result) ? result : hook_##name(a, b, c, d, context))

#define SAMPLED_FREE(name, block) \
	uint64_t hook_##name(PARAMETERS); \
	HOOK sampled_##name(PARAMETERS) \
	{ \
		if (UNLIKELY(sample_may_hold(context->recorder, block))) \
			return hook_##name(a, b, c, d, context); \
		return ((heap_call *)context->original)(a, b, c, 0); \
	}

SAMPLED_ALLOC(malloc, a, 0)
SAMPLED_ALLOC(calloc, product(a, b), 0)
SAMPLED_ALLOC(aligned, b, 0)
SAMPLED_ALLOC(new_aligned, a, 0)
SAMPLED_ALLOC(realloc, b, a)
SAMPLED_ALLOC(realloc_extended, b, a)
SAMPLED_ALLOC(reallocarray, product(b, c), a)
SAMPLED_ALLOC(posix_memalign, c, 0)
SAMPLED_NEW(handled_new, a, b)
SAMPLED_NEW(handled_new_aligned, b, a)
SAMPLED_FREE(free, a)
SAMPLED_FREE(free_sized, a)
SAMPLED_FREE(free_aligned_sized, a)
SAMPLED_FREE(delete_aligned, a)
SAMPLED_FREE(delete_sized_aligned, a)
SAMPLED_FREE(arena_free, b)
