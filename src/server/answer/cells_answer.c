/* SPDX-License-Identifier: MIT */
#include "server/answer/cells_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cells/cells.h"
#include "server/answer/question.h"

struct cells_answer {
	struct cells_request request;
	struct sink *out;
};

static int answer_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct cells_answer *answer = context;
	const struct action_source *source = analysis->input.sources;
	const struct cells_source cells = {.table = source->table,
					   .names = source->names,
					   .filter = source->filter,
					   .cull = analysis->input.cull};
	answer->out->used = 0;
	action_input_settle(&analysis->input);
	return cells_write(answer->out, &cells, &answer->request, diag);
}

/* ---- filters ---- */

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

/* Take the words of a filter: options and their values, as a command has them, with line feeds between them. */
static int filter_take(struct filter_request *asked, char *text, struct diag *diag)
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

int cells_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag)
{
	struct cells_answer answer = {.out = out,
				      .request = {.has_range = question->has_range,
						  .from_ns = question->from_ns,
						  .to_ns = question->to_ns,
						  .interval_count = question->intervals,
						  .bound_count = question->bound_count,
						  .node = question->node}};
	struct filter_request asked;
	char *words = question->filter ? strdup(question->filter) : NULL;
	const struct shown_question ask = {.shown = shown, .asked = &asked, .make = answer_make, .context = &answer};
	_Static_assert(sizeof(answer.request.bounds) == sizeof(question->bounds_ns), "bounds of a question");
	memcpy(answer.request.bounds, question->bounds_ns, sizeof(question->bounds_ns));
	filter_request_init(&asked);
	int error = words ? filter_take(&asked, words, diag) : 0;
	error = error ? error : shown_trace_ask(&ask, caller, diag);
	filter_request_fini(&asked);
	free(words);
	return error;
}
