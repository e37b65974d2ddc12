/* SPDX-License-Identifier: MIT */
#include "query/window_word.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "query/filter_words.h"

static char *copy(const char *text, size_t length)
{
	char *copied = memory_resize(NULL, length + 1, 1);
	memcpy(copied, text, length);
	copied[length] = 0;
	return copied;
}

/* Return 0, or -EINVAL with the reason in diag: the text is no time. */
static int check_time(const char *time, struct diag *diag)
{
	struct filter_request request;
	filter_request_init(&request);
	int error = filter_word_take(&request, &filter_words[FILTER_WORD_RANGE], 0, time, diag);
	filter_request_fini(&request);
	return error;
}

int window_word_parse(struct window_word *window, const char *word, struct diag *diag)
{
	const char *at = strrchr(word, '@'), *dots = at ? strstr(at, "..") : NULL;
	*window = (struct window_word){NULL};
	if (!dots || !access(word, F_OK)) {
		window->path = copy(word, strlen(word));
		return 0;
	}
	const char *const ends[2][2] = {{at + 1, dots}, {dots + 2, dots + strlen(dots)}};
	window->path = copy(word, (size_t)(at - word));
	for (int i = 0; i < 2; i++) {
		if (ends[i][1] > ends[i][0])
			window->times[i] = copy(ends[i][0], (size_t)(ends[i][1] - ends[i][0]));
		if (window->times[i] && check_time(window->times[i], diag)) {
			window_word_fini(window);
			return -EINVAL;
		}
	}
	if (*window->path && window_word_is_part(window))
		return 0;
	window_word_fini(window);
	return diag_fail(diag, EINVAL, "a window is written FILE@T1..T2; one of the two times may be left out");
}

int window_word_resolve(const struct window_word *window, int64_t start_realtime_ns, struct heap_range *range,
			struct diag *diag)
{
	struct heap_range found = *range;
	for (int i = 0; i < 2; i++) {
		struct heap_range moment;
		struct filter_request request;
		if (!window->times[i])
			continue;
		filter_request_init(&request);
		request.range = (struct filter_times){{window->times[i], window->times[i]}};
		int error = filter_word_resolve(&request, &filter_words[FILTER_WORD_RANGE], start_realtime_ns, &moment,
						diag);
		filter_request_fini(&request);
		if (error)
			return error;
		*(i ? &found.to_ns : &found.from_ns) = moment.from_ns;
	}
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
	*window = (struct window_word){NULL};
}
