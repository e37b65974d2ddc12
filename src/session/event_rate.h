/* SPDX-License-Identifier: MIT */
/** How many events a second there were lately. What is counted is whole only when all that lies in buffers was taken;
    those moments are noted. */
#ifndef XHEAP_SESSION_EVENT_RATE_H
#define XHEAP_SESSION_EVENT_RATE_H

#include <stdint.h>

/** So many events by these ticks. */
struct rate_mark {
	uint64_t ticks, events;
};

struct event_rate {
	struct rate_mark last, before;
};

/** Events are counted from here on. */
void event_rate_begin(struct event_rate *rate, uint64_t ticks);

/** All that had happened by `ticks` is in `events`. Of moments that are closer than RATE_MARK_MS only the first
    counts. */
void event_rate_note(struct event_rate *rate, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms);

/** Events a second up to now, at which all is in `events`: since the last noted moment that is RATE_LEAST_MS old, or
    since the beginning. */
uint64_t event_rate_get(const struct event_rate *rate, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms);

enum { RATE_MARK_MS = 2000, RATE_LEAST_MS = 1000 };

#endif
