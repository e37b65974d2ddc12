/* SPDX-License-Identifier: MIT */
/** Buffers of the region: getting one, finishing one, and waiting for one. */
#ifndef XHEAP_RECORDER_STREAM_H
#define XHEAP_RECORDER_STREAM_H

#include "recorder/recorder.h"
#include "region/atomic.h"

/** Finish the buffer in use, if any, and begin another one at `ticks`. Return 0 if no buffer is free and the wait is
    over. */
int stream_next(struct thread *thread, struct event_stream *stream, uint64_t ticks, enum region_lost kind);

/** Begin again within the buffer, for another thread or after a pause too long for a delta. If the record does not fit,
    try a new buffer. Return 0 if there is none. */
int stream_begin(struct thread *thread, struct event_stream *stream, uint64_t ticks, enum region_lost kind);

/** Count an event that could not be recorded. */
void stream_lose(struct thread *thread, enum region_lost kind, uint64_t bytes, uint64_t ticks);

/** Pause before the `round`th retry: the longer, the more rounds. Return the least time of the pause, in ns. */
uint64_t pause_for(const struct recorder *recorder, uint32_t round);

/** A wait for the logger to make room. Zero it. */
struct waiting {
	uint64_t begin, since; /**< ticks of the first pause and of the last progress */
	uint64_t progress;
	/** ns of pauses since the last progress, and in all: known without a clock */
	uint64_t paused_ns, all_paused_ns;
	uint32_t round;
};

/** Pause a moment. Return 0 if the wait is over, because the session does not wait or the logger has made no progress
    for too long. */
int logger_wait(struct recorder *recorder, struct waiting *waiting);

/** Wait, within a limit, until *count is no longer `seen`. Return 0 if it stays the same or takes too long. */
int room_wait(struct recorder *recorder, enum room kind, const uint32_t *count, uint32_t seen);

/** Hand the buffer in use, if any, over to the logger, with everything up to stream->write. */
void stream_hand_over(struct thread *thread, struct event_stream *stream);

/** Commit everything up to stream->write: make it visible to the logger. */
static inline void stream_commit(struct event_stream *stream)
{
	/* Pairs with the acquire in the logger's drain. */
	STORE_RELEASE(&stream->head->committed, (uint32_t)(stream->write - stream->start));
}

#endif
