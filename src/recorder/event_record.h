/* SPDX-License-Identifier: MIT */
/** An event as a record: its numbers, its part of the stack, and the writing of both into the thread's buffer. */
#ifndef XHEAP_RECORDER_EVENT_RECORD_H
#define XHEAP_RECORDER_EVENT_RECORD_H

#include "recorder/heap_rows.h"
#include "recorder/stream.h"
#include "region/record.h"

enum { EVENT_PUSH_MAX = 128 };

/* An event's numbers. Fields that its flags do not name are not set. */
struct event {
	uint64_t address, previous, size, usable, slack, argument, argument2, duration, ticks;
	uint32_t error;
	uint8_t flags; /* enum record_flag */
	uint8_t lost;  /* enum region_lost */
	uint16_t heap;
};

/* The stack part of a record. */
struct change {
	uint32_t kept, pushed;
	const uint32_t *id; /* outermost first; filled from the walk for signal streams */
	int has_stack;
};

/* Set the block's usable size. If it does not fit the record's own field, the record has it in words of its own. */
static inline void event_set_usable(struct event *event, uint64_t usable)
{
	event->usable = usable;
	event->slack = usable - event->size;
	if (LIKELY(event->slack < RECORD_NO_SLACK))
		return;
	/* An unknown size (0) is less than the requested size. */
	event->slack = RECORD_NO_SLACK;
	if (usable)
		event->flags |= RECORD_BIG;
}

/* Set the new block's heap and usable size by one read of glibc's word before the block. */
static inline __attribute__((always_inline)) void event_set_block(struct event *event, struct thread *thread,
								  const struct hook_context *context)
{
	if (UNLIKELY(context->chunk == CHUNK_NONE)) {
		event->heap = heap_of_key(thread, context, context->heap_key);
		event_set_usable(event, ask_usable(context, event->address));
		return;
	}
	uint64_t word = *(const uint64_t *)(event->address - 8), key = context->heap_key, usable = (word & ~7ull) - 8;
	if (UNLIKELY(word & (CHUNK_MMAPPED | CHUNK_NON_MAIN))) {
		key = odd_heap_key(context, event->address, word);
		usable = usable_of(event->address, word);
	}
	event->heap = heap_of_key(thread, context, key);
	event_set_usable(event, usable);
}

/** Return the first words of the event's record. */
static inline struct record_head head_of(const struct hook_context *context, const struct event *event, uint64_t flags,
					 uint64_t pop, uint64_t push, uint64_t delta)
{
	return (struct record_head){.entry = context->entry,
				    .flags = flags,
				    .pop = pop,
				    .push = push,
				    .delta = delta,
				    .address = event->address,
				    .duration = event->duration,
				    .size = event->size,
				    .slack = event->slack,
				    .heap = event->heap};
}

/** Write a record of any kind, beginning a new buffer if necessary. Return its size for the caller to commit; 0 if it
    was lost or is already handed over. */
uint32_t event_write_slowly(struct call *call, const struct hook_context *context, struct event *event,
			    struct change change);

/** As event_write(), for calls that began special. */
uint32_t event_write_special(struct call *call, const struct hook_context *context, struct event *event,
			     uint32_t stack_option);

/* Capture the stack. Return the frames that the event keeps and adds. */
static inline __attribute__((always_inline)) struct change take_stack(const struct call *call)
{
	struct thread *thread = call->thread;
	uint32_t kept = capture_stack(thread, caller_of(frame_of(call)), call->options >> OPTION_DEPTH_SHIFT);
	return (struct change){kept, thread->memo_count - kept, thread->id, 1};
}

/** Return whether the event shall have a stack of native frames only, which the fast way captures. */
static inline int wants_stack(const struct call *call, uint32_t stack_option)
{
	return LIKELY(call->options & stack_option) && LIKELY(!call->thread->stack_mode);
}

/** Return whether the event shall have a stack of any kind. */
static inline int wants_any_stack(const struct call *call, uint32_t stack_option)
{
	return (call->options & stack_option) && !(call->thread->stack_mode & STACKS_ARE_GIVEN_UP);
}

/* Write the record at stream->write without committing it. Return its size, 0 if it was lost. Arguments are passed by
   value: only the slow way needs addresses. */
static inline __attribute__((always_inline)) uint32_t event_write(struct call call, const struct hook_context *context,
								  struct event event, struct change change)
{
	struct event_stream *stream = stream_of(&call);
	uint64_t delta = event.ticks - stream->ticks, flags = event.flags;
	uint32_t kept = 0, pop = 0, push = 0;
	if (LIKELY(change.has_stack)) {
		uint32_t depth = stream->depth;
		kept = change.kept < depth ? change.kept : depth;
		pop = depth - kept;
		push = change.kept + change.pushed - kept;
	}
	uint32_t bytes = (RECORD_EVENT_WORDS + (push + 1) / 2) * RECORD_WORD_BYTES;
	if (UNLIKELY(flags & RECORD_EXTRA_FLAGS) || UNLIKELY((delta | event.size | event.usable) >> 32) ||
	    UNLIKELY((pop | push) >= EVENT_PUSH_MAX) || UNLIKELY(stream->write >= stream->plain_limit)) {
		struct call slow_call = whole_call(&call);
		struct event slow_event = event;
		return event_write_slowly(&slow_call, context, &slow_event, change);
	}
	uint64_t *word = (uint64_t *)stream->write;
	_Static_assert((RECORD_EVENT_WORDS + EVENT_PUSH_MAX / 2) * RECORD_WORD_BYTES <= RECORDER_PLAIN_BYTES,
		       "plain_limit");
	if (UNLIKELY(!change.has_stack)) {
		record_put_head(word, head_of(context, &event, flags | RECORD_NO_STACK, 0, 0, delta));
	} else {
		record_put_ids(record_put_head(word, head_of(context, &event, flags, pop, push, delta)),
			       change.id + kept, push);
		stream->depth = kept + push;
	}
	stream->ticks = event.ticks;
	return bytes;
}

/** As take_stack(), with Python frames. */
struct change take_python_stack(const struct call *call);

/** As leave_with_block() of a plain call, with a stack that has Python frames. */
void leave_with_python(const struct call *call, const struct hook_context *context, const struct event *event,
		       uint32_t stack_option);

/** As event_write() of a plain call, with a stack that has Python frames. */
uint32_t event_write_with_python(const struct call *call, const struct hook_context *context,
				 const struct event *event);

/* As event_write(), of a plain call, with the stack that it shall have. */
static inline __attribute__((always_inline)) uint32_t event_write_plain(struct call call,
									const struct hook_context *context,
									struct event event, uint32_t stack_option)
{
	struct change none = {0, 0, 0, 0};
	if (wants_stack(&call, stack_option))
		return event_write(call, context, event, take_stack(&call));
	if (!wants_any_stack(&call, stack_option))
		return event_write(call, context, event, none);
	struct call whole = whole_call(&call);
	struct event copy = event;
	return event_write_with_python(&whole, context, &copy);
}

/** End the call of an event whose stack is captured: write and commit its record. */
static inline __attribute__((always_inline)) void leave_with_change(struct call call,
								    const struct hook_context *context,
								    struct event event, struct change change,
								    uint32_t stack_option, int is_special)
{
	event.duration = LIKELY(call.options & OPTION_DURATION) ? region_duration_encode(event.ticks - call.begin)
								: RECORD_NO_DURATION;
	if (!is_special || event.address)
		event_set_block(&event, call.thread, context);
	else
		event_set_usable(&event, 0);
	uint32_t bytes;
	if (is_special) {
		struct call special_call = call;
		struct event special_event = event;
		bytes = event_write_special(&special_call, context, &special_event, stack_option);
	} else {
		bytes = event_write(call, context, event, change);
	}
	if (LIKELY(bytes)) {
		struct event_stream *stream = stream_of(&call);
		stream->write += bytes;
		stream_commit(stream);
	}
	call_end(&call);
}

/* End the call of Alloc and ReAlloc. If there is no block, the special way is taken. */
static inline __attribute__((always_inline)) void leave_with_block(struct call call, const struct hook_context *context,
								   struct event event, uint32_t stack_option,
								   int is_special)
{
	struct change none = {0, 0, 0, 0};
	event.ticks = is_special ? clock_of(context->recorder, call.options) : cpu_ticks();
	/* Two copies of the code, each of which keeps few values. */
	if (is_special) {
		leave_with_change(call, context, event, none, stack_option, 1);
	} else if (wants_stack(&call, stack_option)) {
		leave_with_change(call, context, event, take_stack(&call), stack_option, 0);
	} else if (wants_any_stack(&call, stack_option)) {
		struct call whole = whole_call(&call);
		struct event copy = event;
		leave_with_python(&whole, context, &copy, stack_option);
	} else {
		leave_with_change(call, context, event, none, stack_option, 0);
	}
}

#endif
