/* SPDX-License-Identifier: MIT */
/** How many events a second there were lately. What is counted is whole only when all that lies in buffers was taken; those moments are noted. */
#ifndef XHEAP_SESSION_PACE_H
#define XHEAP_SESSION_PACE_H

#include <stdint.h>

/** So many events by these ticks. */
struct pace_mark { uint64_t ticks, events; };

struct pace { struct pace_mark last, before; };

/** Events are counted from here on. */
void pace_begin(struct pace *pace, uint64_t ticks);

/** All that had happened by `ticks` is in `events`. Of moments that are closer than PACE_MARK_MS only the first counts. */
void pace_note(struct pace *pace, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms);

/** Events a second up to now, at which all is in `events`: since the last noted moment that is PACE_LEAST_MS old, or since the beginning. */
uint64_t pace_rate(const struct pace *pace, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms);

enum { PACE_MARK_MS = 2000, PACE_LEAST_MS = 1000 };

#endif
