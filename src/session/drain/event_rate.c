/* SPDX-License-Identifier: MIT */
#include "session/drain/event_rate.h"

void event_rate_begin(struct event_rate *rate, uint64_t ticks)
{
	rate->last = rate->before = (struct rate_mark){ticks, 0};
}

/* Return the ticks since a mark, 0 if they are negative: clocks of two processors differ a little. */
static uint64_t ticks_since(const struct rate_mark *mark, uint64_t ticks)
{
	return ticks > mark->ticks ? ticks - mark->ticks : 0;
}

void event_rate_note(struct event_rate *rate, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms)
{
	if (ticks_since(&rate->last, ticks) < RATE_MARK_MS * ticks_per_ms)
		return;
	rate->before = rate->last;
	rate->last = (struct rate_mark){ticks, events};
}

uint64_t event_rate_get(const struct event_rate *rate, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms)
{
	const struct rate_mark *since =
		ticks_since(&rate->last, ticks) >= RATE_LEAST_MS * ticks_per_ms ? &rate->last : &rate->before;
	uint64_t passed = ticks_since(since, ticks);
	/* A thread that changes its identity again and again has counts that shrink. */
	if (!passed || events <= since->events)
		return 0;
	return (uint64_t)((double)(events - since->events) * 1000 * (double)ticks_per_ms / (double)passed);
}
