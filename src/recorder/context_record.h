/* SPDX-License-Identifier: MIT */
/** The thread's context in OpenTelemetry's words, read at an event of a sample: src/recorder/context_record.c. */
#ifndef XHEAP_RECORDER_CONTEXT_RECORD_H
#define XHEAP_RECORDER_CONTEXT_RECORD_H

#include "recorder/event_record.h"

/** Tell the reader of the call's stream which context the thread has, if the reader does not know it. The event, whose
    stack `change` is, then needs no new buffer. Return that context. */
struct thread_context context_record_put(struct call *call, const struct event *event, const struct change *change);

/** The event's record, with this context, is the next one of the stream; bytes 0: it is lost or handed over. */
static inline void context_record_settle(struct call *call, const struct thread_context *context, uint32_t bytes)
{
	const struct event_stream *stream = call->stream;
	call->thread->context[stream->is_signal_stream] =
		(struct stream_context){*context, bytes ? stream->write + bytes : 0};
}

#endif
