/* SPDX-License-Identifier: MIT */
#include "server/answer/question_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

static const struct filter_word *word_find(const char *name)
{
	for (unsigned i = 0; i < FILTER_WORD_COUNT; i++)
		if (!filter_words[i].is_of_reports && i != FILTER_WORD_RANGE && i != FILTER_WORD_AT &&
		    (!strcasecmp(name, filter_words[i].name) ||
		     (filter_words[i].other && !strcasecmp(name, filter_words[i].other))))
			return &filter_words[i];
	return NULL;
}

/* Take the values that follow a word, up to the next word. Return where that begins, or NULL with the reason. */
static char **values_take(struct filter_request *asked, const struct filter_word *word, char **values,
			  struct diag *diag)
{
	const unsigned count = filter_word_count(word);
	unsigned place = 0;
	for (; *values && **values != '-'; values++, place++)
		if ((!filter_word_is_list(word) && place == count) ||
		    filter_word_take(asked, word, filter_word_is_list(word) ? 0 : place, *values, diag))
			break;
	if (filter_word_is_list(word) ? !place : place != count)
		diag_fail(diag, EINVAL, "-%s takes %s", word->name, count ? "other values" : "values");
	return *diag->text || filter_word_finish(asked, word, diag) ? NULL : values;
}

int question_filter_take(struct filter_request *asked, char *text, struct diag *diag)
{
	size_t count = 0;
	char **words = memory_zeroed(strlen(text) + 2, sizeof(*words));
	for (char *next; text; text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = 0;
		words[count++] = text;
	}
	for (char **at = words; at && *at;) {
		const struct filter_word *word = **at == '-' ? word_find(*at + 1) : NULL;
		if (!word)
			diag_fail(diag, EINVAL, "%s is no filter", *at);
		at = word ? values_take(asked, word, at + 1, diag) : NULL;
	}
	free(words);
	return *diag->text ? -EINVAL : 0;
}
