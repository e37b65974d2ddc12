/* SPDX-License-Identifier: MIT */
#include "recorder/call.h"

#include "recorder/stream.h"

static inline int is_internal(const struct recorder *recorder, uint64_t pc)
{
	if (pc - recorder->text_low < recorder->text_high - recorder->text_low)
		return 1; /* a tail call: it returns to the recorder's hook */
	for (uint32_t i = 0; i < recorder->range_count; i++)
		if (pc - recorder->allocator[i].low < recorder->allocator[i].high - recorder->allocator[i].low)
			return 1;
	for (uint32_t i = 0; i < recorder->internal_count; i++)
		if (recorder->internal[i] == pc)
			return 1;
	return 0;
}

/* Discard the guard of an outer call that is gone without a return. Its Free took effect, as far as can be known: its
   record stays. */
static void guard_discard(struct thread *thread)
{
	struct region_slot *slot = thread->slot;
	uint32_t pending = LOAD(&slot->pending);
	if (pending && thread->stream.head && thread->stream.write + pending <= thread->stream.limit) {
		thread->stream.write += pending;
		stream_commit(&thread->stream);
	}
	STORE(&slot->pending, 0);
	STORE(&slot->call_entry, 0);
	/* The lost call may have remembered a stack that the buffer does not have: reader and thread begin anew. */
	thread->memo_count = thread->extra_count = thread->bp_end = 0;
	thread->memo_is_home = 0;
	if (thread->handling)
		handling_end(thread->recorder);
	thread->handling = 0;
	if (thread->stream.head)
		stream_begin(thread, &thread->stream, clock_now(thread->recorder), LOST_FREE);
	thread->guard = 0;
}

static inline int is_annotation(const struct hook_context *context)
{
	return function_is_annotation(context->function);
}

/* Return whether the call under way is of an operator that uses no other allocator, or that calls new handlers. Other
   calls are then those of what it calls, such as the making of an exception. */
static int is_separate(const struct thread *thread)
{
	const struct recorder *recorder = thread->recorder;
	uint32_t entry = LOAD(&thread->slot->call_entry) - 1;
	return thread->handling == thread->guard ||
	       (entry < recorder->limits.entry_max &&
		region_entry_at(recorder->region, &recorder->limits, entry)->is_separate);
}

/* Begin a call under a guard. Return true if it is an event; call->is_signal says of which kind. */
__attribute__((noinline)) static int enter_nested(struct call *call, const struct hook_context *context,
						  struct thread *thread, struct recorder *recorder)
{
	int is_live, is_signal;
	struct frame_state at = caller_of(call->frame);
	/* An allocator's annotation of its own pools is no call of itself. */
	if (!is_annotation(context) && is_internal(recorder, at.pc)) {
		BUMP(&thread->slot->suppressed, 1);
		return 0;
	}
	struct signal_stream *signal_stream = thread_signal_stream(thread);
	/* A signal within a signal's call, or a side call that never returned. */
	int is_signal_live = signal_stream && signal_stream->busy && at.sp < signal_stream->busy &&
			     signal_stream->busy - at.sp < (1u << 20);
	if (!signal_stream || is_signal_live) {
		__atomic_fetch_add(&recorder->region->untraced_calls, 1, __ATOMIC_RELAXED);
		return 0;
	}
	uint32_t max = sizeof(signal_stream->fresh) / sizeof(signal_stream->fresh[0]);
	capture_whole(thread, at, signal_stream->fresh, max, thread->guard, &is_live, &is_signal);
	if (!is_live) {
		guard_discard(thread);
		return 1;
	}
	if (!is_signal && !is_annotation(context) && !is_separate(thread)) {
		BUMP(&thread->slot->suppressed, 1);
		return 0;
	}
	signal_stream->busy = at.sp;
	call->signal_stream = signal_stream;
	call->is_signal = 1;
	return 1;
}

/* Begin a call under a guard, without the processor's clock, for a sample, or in the test mode. Return 0 if it is
   passed through. */
__attribute__((noinline)) int enter_special(struct call *call, const struct hook_context *context, uint64_t frame)
{
	struct recorder *recorder = context->recorder;
	struct thread *thread = thread_current(recorder);
	if (!thread)
		return 0;
	*call = (struct call){.thread = thread,
			      .stream = &thread->stream,
			      .frame = frame,
			      .options = LOAD(&recorder->region->options) & recorder->options_mask};
	if (thread->guard && !enter_nested(call, context, thread, recorder))
		return 0;
	if (call->is_signal)
		call->stream = &call->signal_stream->stream;
	else
		thread->guard = frame;
	__asm__ volatile("" ::: "memory");
	call->begin = clock_of(recorder, call->options);
	/* Events that this thread has recorded by the processor's clock stay before this one. */
	if ((call->options & OPTION_COARSE_CLOCK) && call->begin <= call->stream->ticks) {
		__atomic_fetch_add(&recorder->region->coarse_ticks, call->stream->ticks - call->begin + 1,
				   __ATOMIC_RELAXED);
		call->begin = call->stream->ticks + 1;
	}
	return 1;
}

/* Count a call that returns although another one took it for gone: it is no event. */
__attribute__((noinline)) int call_is_lost(struct recorder *recorder)
{
	COUNT(&recorder->region->untraced_calls, 1);
	return 0;
}
