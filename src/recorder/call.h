/* SPDX-License-Identifier: MIT */
/**
 * A call of a hook, from its beginning to its end: whose call it is, the guard that tells nested calls, the time, and
 * the function that is called. What a plain call takes lies here, to become part of each hook; the rest is in call.c.
 */
#ifndef XHEAP_RECORDER_CALL_H
#define XHEAP_RECORDER_CALL_H

#include "recorder/capture.h"
#include "recorder/sys.h"
#include "recorder/thread.h"

/** Before each function that the injector finds by its name, and nothing else calls. */
#define HOOK __attribute__((used, visibility("hidden"))) uint64_t

typedef uint64_t heap_call(uint64_t, uint64_t, uint64_t, uint64_t);

/* What leave() needs of enter(). */
struct call {
	struct thread *thread; /* NULL: not an event of its own */
	uint64_t begin;
	uint32_t options;
	uint32_t is_signal;
	int is_plain; /* the next two are as of any outermost call; a constant in the compiler's eyes */
	struct event_stream *stream;
	uint64_t frame; /* of the hook; the caller's pc, sp and bp lie around it */
	struct signal_stream *signal_stream;
};

/* The hook's caller. */
static inline struct frame_state caller_of(uint64_t frame)
{
	return (struct frame_state){((const uint64_t *)frame)[1], frame + 16, *(const uint64_t *)frame};
}

enum { CALL_PASSES, CALL_IS_PLAIN, CALL_IS_SPECIAL };

/** Begin a call that enter() took for CALL_IS_SPECIAL. Return 0 if it is no event, and is passed through. */
int enter_special(struct call *call, const struct hook_context *context, uint64_t frame);

/* CALL_IS_PLAIN: an outermost call, with the guard set and the time taken. CALL_IS_SPECIAL: enter_special() decides. */
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
	/* The guard must stand before anything that a signal handler's call must not find half done. */
	__asm__ volatile("" ::: "memory");
	call->begin = cpu_ticks();
	return CALL_IS_PLAIN;
}

/* Of a plain call it is the hook's own: known without being kept. */
static inline __attribute__((always_inline)) uint64_t frame_of(const struct call *call)
{
	return call->is_plain ? (uint64_t)__builtin_frame_address(0) : call->frame;
}

static inline __attribute__((always_inline)) struct event_stream *stream_of(const struct call *call)
{
	return call->is_plain ? &call->thread->stream : call->stream;
}

/* The same for a function that is not part of the hook. */
static inline __attribute__((always_inline)) struct call whole_call(const struct call *call)
{
	struct call whole = *call;
	whole.stream = stream_of(call);
	whole.frame = frame_of(call);
	whole.is_plain = 0;
	return whole;
}

/* Where no stacks are wanted, every instruction counts. */
static inline __attribute__((always_inline)) uint64_t call_original(const struct call *call, uint64_t function,
								    uint64_t a, uint64_t b, uint64_t c)
{
	if (LIKELY(call->options & OPTION_STACKS))
		return cpu_call_shown(frame_of(call), function, a, b, c);
	return ((heap_call *)function)(a, b, c, 0);
}

static inline void call_announce(const struct call *call, const struct hook_context *context, uint64_t size)
{
	if (call->is_signal)
		return;
	struct region_slot *slot = call->thread->slot;
	STORE(&slot->call_ticks, call->begin);
	STORE(&slot->call_size, size);
	STORE_RELEASE(&slot->call_entry, context->call_entry);
}

/** Count a call that returns after another one took it for gone. Return 0. */
int call_is_lost(struct recorder *recorder);

/* Is this still the process and the call that began? Not in a child forked by a signal handler meanwhile, nor when our
 * guard was discarded. */
static inline __attribute__((always_inline)) int call_is_ours(const struct call *call)
{
	if (UNLIKELY(!LOAD(call->thread->is_alive)))
		return 0;
	return call->is_signal || LIKELY(call->thread->guard == frame_of(call)) || call_is_lost(call->thread->recorder);
}

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
