/* SPDX-License-Identifier: MIT */
/** A call of a hook from its beginning to its end: its thread, the guard that marks nested calls, the time, and the
    called function. The code for plain calls lies here, to be inlined into each hook; the rest is in call.c. */
#ifndef XHEAP_RECORDER_CALL_H
#define XHEAP_RECORDER_CALL_H

#include "recorder/capture.h"
#include "recorder/sys.h"
#include "recorder/thread.h"

/** The type and attributes of functions that the injector finds by name and nothing else calls. */
#define HOOK __attribute__((used, visibility("hidden"))) uint64_t

typedef uint64_t heap_call(uint64_t, uint64_t, uint64_t, uint64_t);

/* The results of enter() that leave() uses. */
struct call {
	struct thread *thread; /* NULL: the call is no event of its own */
	uint64_t begin;
	uint32_t options;
	uint32_t is_signal;
	int is_plain; /* the next two are as in any outermost call; a constant for the compiler */
	struct event_stream *stream;
	uint64_t frame; /* of the hook; the caller's pc, sp and bp lie around it */
	struct signal_stream *signal_stream;
};

/* Return the hook's caller. */
static inline struct frame_state caller_of(uint64_t frame)
{
	return (struct frame_state){((const uint64_t *)frame)[1], frame + 16, *(const uint64_t *)frame};
}

enum { CALL_PASSES, CALL_IS_PLAIN, CALL_IS_SPECIAL };

/** Begin a call for which enter() returned CALL_IS_SPECIAL. Return 0 if it is no event and is passed through. */
int enter_special(struct call *call, const struct hook_context *context, uint64_t frame);

/* Begin a call. CALL_IS_PLAIN: it is an outermost call, the guard is set and the time taken. CALL_IS_SPECIAL:
   enter_special() decides. CALL_PASSES: no event. */
static inline __attribute__((always_inline)) int enter(struct call *call, const struct hook_context *context,
						       uint64_t frame)
{
	struct recorder *recorder = context->recorder;
	uint32_t options = LOAD(&recorder->region->options);
	if (UNLIKELY((options & (OPTION_ENABLED | OPTION_COARSE_CLOCK | OPTION_CHECK | OPTION_SAMPLE |
				 OPTION_COUNT_ONLY)) != OPTION_ENABLED))
		return options & OPTION_ENABLED ? CALL_IS_SPECIAL : CALL_PASSES;
	struct thread *thread = thread_current(recorder);
	if (UNLIKELY(!thread))
		return CALL_PASSES;
	if (UNLIKELY(thread->guard))
		return CALL_IS_SPECIAL;
	call->thread = thread;
	call->options = options;
	call->is_signal = 0;
	call->is_plain = 1;
	thread->guard = frame;
	/* The guard is set before everything that a signal handler's call must not find half done. */
	__asm__ volatile("" ::: "memory");
	call->begin = cpu_ticks();
	return CALL_IS_PLAIN;
}

/* Return the hook's frame. In a plain call it is the present frame, which needs no storage. */
static inline __attribute__((always_inline)) uint64_t frame_of(const struct call *call)
{
	return call->is_plain ? (uint64_t)__builtin_frame_address(0) : call->frame;
}

/** Return the stream for the call's record. */
static inline __attribute__((always_inline)) struct event_stream *stream_of(const struct call *call)
{
	return call->is_plain ? &call->thread->stream : call->stream;
}

/* Return the call with its implied fields filled in, for a function outside of the hook. */
static inline __attribute__((always_inline)) struct call whole_call(const struct call *call)
{
	struct call whole = *call;
	whole.stream = stream_of(call);
	whole.frame = frame_of(call);
	whole.is_plain = 0;
	return whole;
}

/* Call the original function. If no stacks are wanted, a plain call saves instructions. */
static inline __attribute__((always_inline)) uint64_t call_original(const struct call *call, uint64_t function,
								    uint64_t a, uint64_t b, uint64_t c)
{
	if (LIKELY(call->options & OPTION_STACKS))
		return cpu_call_shown(frame_of(call), function, a, b, c);
	return ((heap_call *)function)(a, b, c, 0);
}

/** Announce the call in the thread's slot, in case the process dies in it. subject: the size of the block, or the
    address that is freed. */
static inline void call_announce(const struct call *call, const struct hook_context *context, uint64_t subject)
{
	if (call->is_signal)
		return;
	struct region_slot *slot = call->thread->slot;
	STORE(&slot->call_ticks, call->begin);
	STORE(&slot->call_subject, subject);
	STORE_RELEASE(&slot->call_entry, context->call_entry);
}

/** As call_announce(), of a call that resizes the block at the address. */
static inline void call_announce_resize(const struct call *call, const struct hook_context *context, uint64_t address,
					uint64_t size)
{
	if (!call->is_signal)
		STORE(&call->thread->slot->call_bytes, size < UINT32_MAX ? (uint32_t)size + 1 : UINT32_MAX);
	call_announce(call, context, address);
}

/** Count a call that returns after another one took it for gone. Return 0. */
int call_is_lost(struct recorder *recorder);

/* Return whether this is still the process and the call that began. It is not in a child that a signal handler has
   forked since, nor if the guard was discarded. */
static inline __attribute__((always_inline)) int call_is_ours(const struct call *call)
{
	if (UNLIKELY(!LOAD(call->thread->is_alive)))
		return 0;
	return call->is_signal || LIKELY(call->thread->guard == frame_of(call)) || call_is_lost(call->thread->recorder);
}

/** Count a call that an exception may leave. Return 0, uncounted, if no exception can pass the recorder's frames any
    more. Counting comes first: who ends that pauses this thread before it or after it. */
static inline int handling_begin(struct recorder *recorder)
{
	__atomic_fetch_add(&recorder->mappings.start.handling, 1, __ATOMIC_SEQ_CST);
	if (LIKELY(!LOAD(&recorder->mappings.start.is_over)))
		return 1;
	__atomic_fetch_sub(&recorder->mappings.start.handling, 1, __ATOMIC_RELAXED);
	return 0;
}

/** Count off such a call. */
static inline void handling_end(struct recorder *recorder)
{
	__atomic_fetch_sub(&recorder->mappings.start.handling, 1, __ATOMIC_RELAXED);
}

/** End the call: nothing is under way in the slot, and the guard is free. */
static inline void call_end(const struct call *call)
{
	if (UNLIKELY(call->is_signal)) {
		call->signal_stream->busy = 0;
		return;
	}
	STORE(&call->thread->slot->call_entry, 0);
	__asm__ volatile("" ::: "memory");
	call->thread->guard = 0;
}

#endif
