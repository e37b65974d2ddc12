/* SPDX-License-Identifier: MIT */
#include "session/pace.h"

void pace_begin(struct pace *pace, uint64_t ticks)
{
	pace->last = pace->before = (struct pace_mark){ticks, 0};
}

/* Clocks of two processors differ a little. */
static uint64_t ticks_since(const struct pace_mark *mark, uint64_t ticks)
{
	return ticks > mark->ticks ? ticks - mark->ticks : 0;
}

void pace_note(struct pace *pace, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms)
{
	if (ticks_since(&pace->last, ticks) < PACE_MARK_MS * ticks_per_ms)
		return;
	pace->before = pace->last;
	pace->last = (struct pace_mark){ticks, events};
}

uint64_t pace_rate(const struct pace *pace, uint64_t events, uint64_t ticks, uint64_t ticks_per_ms)
{
	const struct pace_mark *since = ticks_since(&pace->last, ticks) >= PACE_LEAST_MS * ticks_per_ms ? &pace->last : &pace->before;
	uint64_t passed = ticks_since(since, ticks);
	/* Who calls himself now this thread, now that, has counts that shrink. */
	if (!passed || events <= since->events)
		return 0;
	return (uint64_t)((double)(events - since->events) * 1000 * (double)ticks_per_ms / (double)passed);
}
