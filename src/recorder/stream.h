/* SPDX-License-Identifier: MIT */
/** Buffers of the region: getting one, finishing one, what happens when there is none. */
#ifndef XHEAP_RECORDER_STREAM_H
#define XHEAP_RECORDER_STREAM_H

#include "recorder/recorder.h"
#include "region/atomic.h"

/** Finish the buffer in use, if any, and begin another at `ticks`. False: there is none, and waiting is over. */
int stream_next(struct thread *thread, struct event_stream *stream, uint64_t ticks, enum region_lost kind);

/** Begin again within the buffer: another thread, or a pause too long for a delta. False when it does not fit (a new
    buffer was tried). */
int stream_begin(struct thread *thread, struct event_stream *stream, uint64_t ticks, enum region_lost kind);

/** Count an event that could not be recorded. */
void stream_lose(struct thread *thread, enum region_lost kind, uint64_t bytes, uint64_t ticks);

/** Pause before looking again for the `round`th time: longer the longer it takes. For at least so many ns. */
uint64_t pause_for(const struct recorder *recorder, uint32_t round);

/** A wait for the logger to make room; zeroed. */
struct waiting {
	uint64_t begin, since; /**< ticks: the first pause, and the last progress */
	uint64_t progress;
	/** pauses since the last progress, and all: no clock is needed to know these */
	uint64_t paused_ns, all_paused_ns;
	uint32_t round;
};

/** Pause a moment. False: waiting is over, because the session does not wait or the logger has made no progress for too
    long. */
int logger_wait(struct recorder *recorder, struct waiting *waiting);

/** Wait, within a limit, until *count is no longer `seen`. False: nobody makes more of it, or not in time. */
int room_wait(struct recorder *recorder, enum room kind, const uint32_t *count, uint32_t seen);

/** Give the logger the buffer in use, if there is one, with all that was written up to stream->write. */
void stream_hand_over(struct thread *thread, struct event_stream *stream);

/** Make what was written up to stream->write visible to the logger. */
static inline void stream_commit(struct event_stream *stream)
{
	/* Pairs with the acquire in the logger's drain. */
	STORE_RELEASE(&stream->head->committed, (uint32_t)(stream->write - stream->start));
}

#endif
