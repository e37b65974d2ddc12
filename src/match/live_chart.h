/* SPDX-License-Identifier: MIT */
/** The most that was live in each interval of a run that goes on. Intervals are all of one length, 2^k ns, and are
    merged in pairs when the run outgrows them. */
#ifndef XHEAP_MATCH_LIVE_CHART_H
#define XHEAP_MATCH_LIVE_CHART_H

#include <stdbool.h>
#include <stdint.h>

enum { LIVE_CHART_INTERVALS = 256 };

/** A chart. Zero it to begin. */
struct live_chart {
	uint64_t most[LIVE_CHART_INTERVALS]; /**< bytes, by interval */
	uint32_t count;                      /**< intervals up to that of the latest time */
	unsigned shift;      /**< interval i has the times from i << shift on, up to, not with, i + 1 << shift */
	uint64_t live_bytes; /**< since the last change */
};

/** Make intervals that reach to the one of this time, which is not negative. */
void live_chart_extend(struct live_chart *chart, int64_t time_ns);

/** Add bytes that were live all the time. */
void live_chart_raise(struct live_chart *chart, uint64_t bytes);

/** Note what is live from this time on; times before 0 are left out. */
static inline void live_chart_note(struct live_chart *chart, int64_t time_ns, uint64_t bytes)
{
	if (time_ns < 0)
		return;
	if ((uint64_t)time_ns >> chart->shift >= chart->count)
		live_chart_extend(chart, time_ns);
	uint64_t *most = &chart->most[(uint64_t)time_ns >> chart->shift];
	*most = bytes > *most ? bytes : *most;
	chart->live_bytes = bytes;
}

/** Return whether between two times, the later one of which no change is behind, so many bytes are no news. */
static inline bool live_chart_has(const struct live_chart *chart, int64_t from_ns, int64_t to_ns, uint64_t bytes)
{
	uint64_t interval = (uint64_t)from_ns >> chart->shift;
	return from_ns >= 0 && interval == (uint64_t)to_ns >> chart->shift && interval < chart->count &&
	       bytes <= chart->most[interval];
}

#endif
