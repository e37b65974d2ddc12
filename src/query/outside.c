/* SPDX-License-Identifier: MIT */
#include "query/outside.h"

#include <stdio.h>

#include "base/text.h"

static struct heap_outside outside(const char *what, bool is_after, int64_t duration_ns)
{
	struct heap_outside found = {.what = what, .is_after = is_after};
	if (is_after)
		snprintf(found.text, sizeof(found.text), "the %s lies behind the trace's end at %s", what,
			 text_duration(duration_ns).data);
	else
		snprintf(found.text, sizeof(found.text), "the %s lies before the trace's start", what);
	return found;
}

unsigned heap_outside_find(const struct heap_filter *filter, struct heap_range range, int64_t duration_ns,
			   struct heap_outside found[HEAP_OUTSIDE_MAX])
{
	const struct heap_moment *moment = &filter->moment;
	const struct {
		const char *what;
		bool is_asked;
		int64_t from_ns, to_ns;
	} times[HEAP_OUTSIDE_MAX] = {
		{"range", true, range.from_ns, range.to_ns},
		{"window", filter->classes != 0, filter->window.from_ns, filter->window.to_ns},
		{"moment", moment->is_asked, moment->at.time_ns, moment->at.time_ns},
	};
	unsigned count = 0;
	for (unsigned i = 0; i < HEAP_OUTSIDE_MAX; i++)
		if (times[i].is_asked && (times[i].from_ns > duration_ns || times[i].to_ns < 0))
			found[count++] = outside(times[i].what, times[i].from_ns > duration_ns, duration_ns);
	return count;
}
