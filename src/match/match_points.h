/* SPDX-License-Identifier: MIT */
/** The effects of points, one after the other, or of a whole run at once. */
#ifndef XHEAP_MATCH_MATCH_POINTS_H
#define XHEAP_MATCH_MATCH_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "match/matching.h"

/** Return whether the run shall wait for the next increment: it continues behind this one's end, and may be plain as a
    whole. */
bool matching_waits(const struct matching *matching, const struct heap_run *run);

/** Match the next points of one thread. Return how many were matched. */
uint32_t matching_run(struct matching *matching, struct heap_run run);

/** Handle the forks and ends of processes before a point of this time. */
void matching_advance(struct matching *matching, int64_t time_ns);
/** End everything that is live in the process; is_open: it stays open at the end of the trace. */
void matching_process_end(struct matching *matching, uint32_t id, bool is_open);

#endif
