/* SPDX-License-Identifier: MIT */
/** Events per second, lately. A count is complete only when all buffers have been taken; event_rate_note() marks such
    moments. */
#ifndef XHEAP_SESSION_EVENT_RATE_H
#define XHEAP_SESSION_EVENT_RATE_H

#include <stdint.h>

/** `events` had happened at `ticks`. */
struct rate_mark {
	uint64_t ticks, events;
};

/** The last two marks. */
struct event_rate {
	struct rate_mark last, before;
};

/** Begin to count events at `ticks`. */
void event_rate_begin(struct event_rate *rate, uint64_t ticks);

/** Note that `events` is complete as of `ticks`. A mark less than RATE_MARK_MS after the last one is ignored. */
void event_rate_note(struct event_rate *rate, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms);

/** Return events per second up to `ticks`, as of which `events` is complete: since the last mark that is RATE_LEAST_MS
    old, or since the beginning. */
uint64_t event_rate_get(const struct event_rate *rate, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms);

enum { RATE_MARK_MS = 2000, RATE_LEAST_MS = 1000 };

#endif
