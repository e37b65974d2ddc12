/* SPDX-License-Identifier: MIT */
/*
 * Words of xheap diff: a trace, a window or a moment of one, and a limit. A window that was read lies in the trace, and reads the
 * same when it is written again; a limit is a number that is not negative.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "action/diff/diff.h"
#include "base/memory.h"
#include "query/window_word.h"
#include "replay.h"

static const struct heap_range trace_range = {0, 5000000000};

static bool is_same(const char *one, const char *other)
{
	return one && other ? !strcmp(one, other) : one == other;
}

static void check_again(const struct window_word *window)
{
	struct diag diag = {""};
	struct window_word again;
	char *word = NULL;
	bool is_moment = window->moment != NULL;
	if (asprintf(&word, "%s@%s%s%s", window->path,
		     is_moment          ? "="
		     : window->times[0] ? window->times[0]
					: "",
		     is_moment ? window->moment : "..", window->times[1] ? window->times[1] : "") < 0)
		memory_exhausted(0);
	if (window_word_parse(&again, word, &diag) || !is_same(again.path, window->path) ||
	    !is_same(again.moment, window->moment) || !is_same(again.times[0], window->times[0]) ||
	    !is_same(again.times[1], window->times[1]))
		abort();
	window_word_fini(&again);
	free(word);
}

static void check_window(const char *word)
{
	struct diag diag = {""};
	struct window_word window;
	struct heap_range range = trace_range;
	struct heap_moment moment;
	if (window_word_parse(&window, word, &diag)) {
		if (!diag.text[0] || window.path || window_word_is_part(&window))
			abort();
		return;
	}
	if (!window_word_is_part(&window) && strcmp(window.path, word) != 0)
		abort();
	if (window_word_is_part(&window))
		check_again(&window);
	int error = window_word_resolve(&window, 0, &range, &moment, &diag);
	if (error ? memcmp(&range, &trace_range, sizeof(range)) || !diag.text[0] : range.from_ns > range.to_ns)
		abort();
	window_word_fini(&window);
}

static void check_limit(const char *word)
{
	struct diag diag = {""};
	struct diff_limit limit;
	if (!diff_limit_parse(&limit, word, &diag) && limit.is_percent &&
	    !(limit.percent >= 0 && isfinite(limit.percent)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *word = malloc(size + 1);
	if (!word)
		return 0;
	memcpy(word, data, size);
	word[size] = 0;
	check_window(word);
	check_limit(word);
	free(word);
	return 0;
}

const struct replay replay = {.bytes_max = 1 << 10, .cuts = 500, .flip_rounds = 20000};
