/* SPDX-License-Identifier: MIT */
#include "query/window_word.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "query/filter_words.h"

static char *copy(const char *text, size_t length)
{
	char *copied = memory_resize(NULL, length + 1, 1);
	memcpy(copied, text, length);
	copied[length] = 0;
	return copied;
}

/* Return 0, or -EINVAL with the reason in diag: the text is no value of the word. NULL is one. */
static int check_time(const char *time, enum filter_word_id word, struct diag *diag)
{
	struct filter_request request;
	if (!time)
		return 0;
	filter_request_init(&request);
	int error = filter_word_take(&request, &filter_words[word], 0, time, diag);
	filter_request_fini(&request);
	return error;
}

/* A time by the clock has a meaning when the trace is open. */
static bool is_by_clock(const char *time)
{
	return time && strchr(time, '/');
}

/* Return 0, or -EINVAL with the reason in diag. */
static int check(const struct window_word *window, struct diag *diag)
{
	struct heap_range all = {0, INT64_MAX};
	struct heap_moment moment;
	if (!*window->path || !window_word_is_part(window))
		return diag_fail(diag, EINVAL,
				 "a window is written FILE@T1..T2, where one of the two times may be left out; a "
				 "moment is written FILE@=T");
	if (check_time(window->times[0], FILTER_WORD_RANGE, diag) ||
	    check_time(window->times[1], FILTER_WORD_RANGE, diag) || check_time(window->moment, FILTER_WORD_AT, diag))
		return -EINVAL;
	if (is_by_clock(window->times[0]) || is_by_clock(window->times[1]) || is_by_clock(window->moment))
		return 0;
	return window_word_resolve(window, 0, &all, &moment, diag);
}

int window_word_parse(struct window_word *window, const char *word, struct diag *diag)
{
	const char *at = strrchr(word, '@'), *dots = at ? strstr(at, "..") : NULL;
	bool is_moment = at && at[1] == '=';
	*window = (struct window_word){.path = NULL};
	if ((!dots && !is_moment) || !access(word, F_OK)) {
		window->path = copy(word, strlen(word));
		return 0;
	}
	window->path = copy(word, (size_t)(at - word));
	if (is_moment)
		window->moment = copy(at + 2, strlen(at + 2));
	else if (dots > at + 1)
		window->times[0] = copy(at + 1, (size_t)(dots - at - 1));
	if (!is_moment && dots[2])
		window->times[1] = copy(dots + 2, strlen(dots + 2));
	int error = check(window, diag);
	if (error)
		window_word_fini(window);
	return error;
}

/* All up to the moment. A moment behind the trace is a mistake; its end has a position of its own. */
static int resolve_moment(const struct window_word *window, int64_t start_realtime_ns, struct heap_range *range,
			  struct heap_moment *moment, struct diag *diag)
{
	struct filter_request request;
	int64_t end_ns = range->to_ns;
	filter_request_init(&request);
	request.moment = window->moment;
	int error = filter_word_resolve_moment(&request, start_realtime_ns, range, diag);
	*moment = request.filter.moment;
	filter_request_fini(&request);
	if (!error && moment->at.time_ns > end_ns && moment->at.time_ns < POSITION_END_NS)
		return diag_fail(diag, EINVAL, "the moment is behind the trace, which ends at %s",
				 text_duration(end_ns).data);
	return error;
}

int window_word_resolve(const struct window_word *window, int64_t start_realtime_ns, struct heap_range *range,
			struct heap_moment *moment, struct diag *diag)
{
	struct heap_range found = *range;
	*moment = (struct heap_moment){.is_asked = false};
	if (window->moment)
		return resolve_moment(window, start_realtime_ns, range, moment, diag);
	for (int i = 0; i < 2; i++) {
		struct heap_range times;
		struct filter_request request;
		if (!window->times[i])
			continue;
		filter_request_init(&request);
		request.range = (struct filter_times){{window->times[i], window->times[i]}};
		int error = filter_word_resolve(&request, &filter_words[FILTER_WORD_RANGE], start_realtime_ns, &times,
						diag);
		filter_request_fini(&request);
		if (error)
			return error;
		*(i ? &found.to_ns : &found.from_ns) = times.from_ns;
	}
	if (!window->times[1] && found.from_ns > range->to_ns)
		return diag_fail(diag, EINVAL, "the window begins behind the trace, which ends at %s",
				 text_duration(range->to_ns).data);
	if (!window->times[0] && found.to_ns < range->from_ns)
		return diag_fail(diag, EINVAL, "the window ends before the trace begins");
	if (found.from_ns > found.to_ns)
		return diag_fail(diag, EINVAL, "the window ends before it begins");
	*range = found;
	return 0;
}

void window_word_fini(struct window_word *window)
{
	free(window->path);
	free(window->times[0]);
	free(window->times[1]);
	free(window->moment);
	*window = (struct window_word){.path = NULL};
}
