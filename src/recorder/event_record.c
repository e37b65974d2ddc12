/* SPDX-License-Identifier: MIT */
#include "recorder/event_record.h"

#include "recorder/context_record.h"
#include "recorder/python.h"

/* Capture a signal handler's whole stack into the signal stream's own memory (ids written over the walk, outermost
   first). */
__attribute__((noinline)) static void change_of_stream(const struct call *call, struct change *change)
{
	struct signal_stream *signal_stream = call->signal_stream;
	int live, nested;
	uint32_t max = sizeof(signal_stream->fresh) / sizeof(signal_stream->fresh[0]);
	uint32_t count = capture_whole(call->thread, caller_of(call->frame), signal_stream->fresh, max,
				       call->thread->guard, &live, &nested);
	uint32_t *id = signal_stream->id;
	for (uint32_t i = 0; i < count; i++)
		id[i] = (uint32_t)signal_stream->fresh[count - 1 - i].id;
	*change = (struct change){0, count, id, 1};
}

__attribute__((noinline)) uint32_t event_write_slowly(struct call *call, const struct hook_context *context,
						      struct event *event, struct change change)
{
	struct thread *thread = call->thread;
	struct event_stream *stream = call->stream;
	enum region_lost lost = (enum region_lost)event->lost;
	uint32_t total = change.kept + change.pushed;
	if ((event->size | event->usable) >> 32) {
		event->flags |= RECORD_BIG;
		event->slack = RECORD_NO_SLACK;
	}
	for (int attempt = 0; attempt < 4; attempt++) {
		uint64_t delta = event->ticks - stream->ticks;
		if (!stream->head) {
			if (!stream_next(thread, stream, event->ticks, lost))
				break;
			continue;
		}
		if (delta >> 32) {
			if (!stream_begin(thread, stream, event->ticks, lost))
				break;
			continue;
		}
		/* A stream that has begun anew remembers nothing: everything is pushed. A side stream remembers only
		   its last event. */
		uint32_t kept = change.kept < stream->depth ? change.kept : stream->depth;
		uint32_t pop = change.has_stack ? stream->depth - kept : 0, push = change.has_stack ? total - kept : 0;
		uint64_t bytes = record_event_bytes(event->flags, pop, push);
		if (stream->write + bytes > stream->limit) {
			if (!stream_next(thread, stream, event->ticks, lost))
				break;
			continue;
		}
		uint64_t flags = event->flags | (change.has_stack ? 0u : RECORD_NO_STACK) |
				 (call->is_signal ? RECORD_IN_SIGNAL : 0u);
		int is_long = record_is_long(pop, push);
		const struct record_extras extras = {event->previous, event->ticks - call->begin,
						     event->argument, event->argument2,
						     event->size,     event->usable,
						     event->error};
		uint64_t *word = record_put_head((uint64_t *)stream->write,
						 head_of(context, event, flags, is_long ? RECORD_LONG_STACK : pop,
							 is_long ? RECORD_LONG_STACK : push, delta));
		word = record_put_extras(word, flags, &extras);
		if (is_long)
			word = record_put_long(word, pop, push);
		record_put_ids(word, change.id + kept, push);
		stream->ticks = event->ticks;
		if (change.has_stack)
			stream->depth = total;
		/* A Free is committed after its call. */
		if (UNLIKELY(stream->is_lent) && !(flags & RECORD_FREE)) {
			stream->write += bytes;
			stream_hand_over(thread, stream);
			return 0;
		}
		return (uint32_t)bytes;
	}
	/* The stream's memory of the stack may not be the thread's now: the next record that fits begins anew. */
	stream->depth = 0;
	stream_lose(thread, lost, event->size, event->ticks);
	return 0;
}

struct change take_python_stack(const struct call *call)
{
	uint32_t depth = call->options >> OPTION_DEPTH_SHIFT;
	uint32_t kept = capture_stack(call->thread, caller_of(call->frame), depth);
	struct python_stack stack = python_capture(call->thread, kept, depth);
	return (struct change){stack.kept, stack.count - stack.kept, stack.id, 1};
}

__attribute__((noinline)) uint32_t event_write_special(struct call *call, const struct hook_context *context,
						       struct event *event, uint32_t stack_option)
{
	struct change change = {0, 0, 0, 0};
	if (call->options & OPTION_COUNT_ONLY) {
		stream_lose(call->thread, (enum region_lost)event->lost, event->size, event->ticks);
		return 0;
	}
	if (!call->is_signal && wants_any_stack(call, stack_option)) {
		change = call->thread->stack_mode & STACKS_HAVE_PYTHON ? take_python_stack(call) : take_stack(call);
		if (call->options & OPTION_CHECK)
			capture_check(call->thread, caller_of(call->frame));
	} else if (call->is_signal && call->options & stack_option) {
		change_of_stream(call, &change);
	}
	if (!(call->options & OPTION_SAMPLE))
		return event_write_slowly(call, context, event, change);
	struct thread_context own = context_record_put(call, event, &change);
	uint32_t bytes = event_write_slowly(call, context, event, change);
	context_record_settle(call, &own, bytes);
	return bytes;
}

__attribute__((noinline)) void leave_with_python(const struct call *call, const struct hook_context *context,
						 const struct event *event, uint32_t stack_option)
{
	leave_with_change(*call, context, *event, take_python_stack(call), stack_option, 0);
}

__attribute__((noinline)) uint32_t event_write_with_python(const struct call *call, const struct hook_context *context,
							   const struct event *event)
{
	return event_write(*call, context, *event, take_python_stack(call));
}
