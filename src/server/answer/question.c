/* SPDX-License-Identifier: MIT */
#include "server/answer/question.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "query/filter.h"

/* A time of this length fits; a longer text is none. */
enum { DIGITS_MAX = 19 };

/* The first bound of the whole run is -1. */
static const char *time_read(const char *text, int64_t *time_ns)
{
	bool is_negative = *text == '-';
	size_t length = strspn(text += is_negative, "0123456789");
	if (!length || length > DIGITS_MAX - 1)
		return NULL;
	*time_ns = (is_negative ? -1 : 1) * strtoll(text, NULL, 10);
	return text + length;
}

static int time_set(int64_t *time_ns, const char *text, struct diag *why)
{
	const char *end = time_read(text, time_ns);
	return end && !*end ? 0 : diag_fail(why, EINVAL, "a time is a number of nanoseconds");
}

static int bounds_set(struct question *question, const char *text, struct diag *why)
{
	question->bound_count = 0;
	while (*text) {
		if (question->bound_count == QUESTION_BOUNDS_MAX)
			return diag_fail(why, EINVAL, "at most %d bounds can be asked for", QUESTION_BOUNDS_MAX);
		text = time_read(text, &question->bounds_ns[question->bound_count++]);
		if (!text || (*text && *text != ','))
			return diag_fail(why, EINVAL, "bounds are numbers of nanoseconds with commas between them");
		text += *text == ',';
	}
	return 0;
}

static int intervals_set(struct question *question, const char *text, struct diag *why)
{
	uint64_t count;
	if (!text_parse_count(text, &count) || count < 1 || count > QUESTION_INTERVALS_MAX)
		return diag_fail(why, EINVAL, "1 to %d intervals can be asked for", QUESTION_INTERVALS_MAX);
	question->intervals = (unsigned)count;
	return 0;
}

static int classes_set(struct question *question, const char *text, struct diag *why)
{
	question->classes = heap_class_set_parse(text);
	if (question->classes)
		return 0;
	return diag_fail(why, EINVAL, "classes are %s, with + between them", heap_class_names().data);
}

static int sort_set(struct question *question, const char *text, struct diag *why)
{
#define X(id, word) word,
	static const char *const words[] = {BLOCKS_ORDERS(X)};
#undef X
	for (unsigned i = 0; i < BLOCKS_ORDER_COUNT; i++) {
		if (strcmp(text, words[i]) != 0)
			continue;
		question->sort = (enum blocks_order)i;
		return 0;
	}
	return diag_fail(why, EINVAL, "rows of blocks are not sorted by that");
}

int question_set(struct question *question, const char *word, const char *text, struct diag *why)
{
	if (!strcmp(word, "from") || !strcmp(word, "to")) {
		question->has_range = true;
		return time_set(*word == 'f' ? &question->from_ns : &question->to_ns, text, why);
	}
	if (!strcmp(word, "at")) {
		question->has_moment = true;
		return time_set(&question->at_ns, text, why);
	}
	if (!strcmp(word, "held"))
		return time_set(&question->held_ns, text, why);
	if (!strcmp(word, "n"))
		return intervals_set(question, text, why);
	if (!strcmp(word, "bounds"))
		return bounds_set(question, text, why);
	if (!strcmp(word, "classes"))
		return classes_set(question, text, why);
	const struct {
		const char *word, **member;
	} texts[] = {{"node", &question->node},       {"ends", &question->ends},     {"asker", &question->asker},
		     {"through", &question->through}, {"filter", &question->filter}, {"function", &question->function}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcmp(word, texts[i].word))
			*texts[i].member = *text ? text : NULL;
	const struct {
		const char *word;
		uint32_t *member, most;
	} counts[] = {{"offset", &question->offset, QUESTION_OFFSET_MAX},
		      {"limit", &question->limit, QUESTION_ROWS_MAX},
		      {"line", &question->line, UINT32_MAX},
		      {"id", &question->id, UINT32_MAX},
		      {"seen", &question->seen, UINT32_MAX}};
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		uint64_t count;
		if (strcmp(word, counts[i].word) != 0)
			continue;
		if (!text_parse_count(text, &count) || count > counts[i].most)
			return diag_fail(why, EINVAL, "%s is a number up to %u", word, counts[i].most);
		*counts[i].member = (uint32_t)count;
	}
	if (!strcmp(word, "sort"))
		return sort_set(question, text, why);
	const bool is_on = !strcmp(text, "1");
	if (!strcmp(word, "rising"))
		question->is_rising = is_on;
	if (!strcmp(word, "merged"))
		question->is_merged = is_on;
	if (!strcmp(word, "whole"))
		question->is_whole = is_on;
	return 0;
}

int question_check(const struct question *question, struct diag *why)
{
	if (question->has_range && question->from_ns > question->to_ns)
		return diag_fail(why, EINVAL, "the range ends before it begins");
	if (question->held_ns < 0)
		return diag_fail(why, EINVAL, "no trace is held before it begins");
	if (question->has_range && question->has_moment)
		return diag_fail(why, EINVAL, "a range and a moment do not go together");
	return 0;
}
