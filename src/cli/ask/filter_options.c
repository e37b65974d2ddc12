/* SPDX-License-Identifier: MIT */
#include "cli/ask/filter_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

void filter_options_init(struct filter_options *options, const char *command)
{
	options->command = command;
	filter_request_init(&options->asked);
}

void filter_options_fini(struct filter_options *options)
{
	filter_request_fini(&options->asked);
}

/* ---- words ---- */

/* Return whether the word belongs to a list: a list ends at the next option. */
static bool is_list_word(const char *word)
{
	return word && (word[0] != '-' || !word[1]);
}

/* Remember a filter with its values, which the report repeats. */
static void note_values(struct filter_options *options, const char *name, char **first, char **end)
{
	struct sink text;
	sink_to_memory(&text);
	for (char **value = first; value < end; value++)
		sink_format(&text, "%s%s", value > first ? " " : "", *value);
	filter_request_note(&options->asked, name, sink_take(&text, NULL));
}

/* Refuse a FILE behind a list, which is easily taken for one of its words. */
static int refuse_trace(const struct filter_options *options, const char *option, char **first, const char *word)
{
	const char *dot = strrchr(word, '.');
	struct stat status;
	if (!dot || strcmp(dot, ".xht") != 0 || stat(word, &status) != 0)
		return 0;
	cli_fail("-%s: %s is a file, and not a frame: a list ends at the next option or --; write", option, word);
	fprintf(stderr, "    xheap %s %s -%s", options->command, text_shown(word), option);
	for (; strcmp(*first, word) != 0; first++)
		fprintf(stderr, " %s", text_shown(*first));
	fputs(" ...\n", stderr);
	return CLI_FAILED;
}

/* Each word of the list; at least one. */
int filter_take_list(struct filter_options *options, struct words *words, const char *option,
		     int (*take)(void *context, const char *word))
{
	char **first = words->next;
	while (is_list_word(options_peek(words))) {
		if (refuse_trace(options, option, first, *words->next) || take(options, *words->next))
			return CLI_FAILED;
		words->next++;
	}
	if (words->next == first)
		return cli_fail("-%s: a value is missing", option);
	note_values(options, option, first, words->next);
	return 0;
}

int filter_add_pattern(struct heap_patterns *patterns, const char *option, const char *word)
{
	struct diag diag = {""};
	return heap_patterns_add(patterns, word, &diag) ? cli_fail("-%s: %s", option, diag.text) : 0;
}

/* ---- options ---- */

static int take_value(struct filter_options *options, const struct filter_word *word, unsigned place, const char *value)
{
	struct diag diag = {""};
	return filter_word_take(&options->asked, word, place, value, &diag) ? cli_fail("-%s: %s", word->name, diag.text)
									    : 0;
}

static int take_values(struct filter_options *options, const struct filter_word *word, struct words *words)
{
	for (unsigned place = 0; place < filter_word_count(word); place++) {
		const char *value = options_value(words, word->name);
		if (!value || take_value(options, word, place, value))
			return CLI_FAILED;
	}
	return 0;
}

/* Numbers may come with commas, and the FILE may follow them. */
static int take_numbers(struct filter_options *options, const struct filter_word *word, struct words *words)
{
	char **first = words->next;
	while (is_list_word(options_peek(words)) && (isdigit((unsigned char)**words->next) || words->next == first)) {
		if (take_value(options, word, 0, *words->next))
			return CLI_FAILED;
		words->next++;
	}
	return words->next == first ? cli_fail("-%s: a value is missing", word->name) : 0;
}

static int take_required(void *context, const char *value)
{
	return take_value(context, &filter_words[FILTER_WORD_REQUIRED], 0, value);
}

static int take_required_of_free(void *context, const char *value)
{
	return take_value(context, &filter_words[FILTER_WORD_REQUIRED_OF_FREE], 0, value);
}

static int filter_set(void *context, struct words *words, int number)
{
	struct filter_options *options = context;
	const struct filter_word *word = &filter_words[number];
	struct diag diag = {""};
	char **first = words->next;
	if (word->values == FILTER_FRAMES)
		return filter_take_list(options, words, word->name,
					word->id == FILTER_WORD_REQUIRED ? take_required : take_required_of_free);
	if ((word->values == FILTER_NUMBERS ? take_numbers : take_values)(options, word, words))
		return CLI_FAILED;
	if (filter_word_finish(&options->asked, word, &diag))
		return cli_fail("-%s: %s", word->name, diag.text);
	/* The report has its range by itself. */
	if (word->id != FILTER_WORD_RANGE)
		note_values(options, word->name, first, words->next);
	return 0;
}

/* ---- the tables ---- */

/* Of the words of query/filter_words.h: those about the range, those that all commands take, those of reports. */
#define ROW(id, name_, other_, value_, help_) \
	{name_,           .others = other_, .type = VALUE_TAKEN, .take = filter_set, .number = FILTER_WORD_##id, \
	 .value = value_, .help = help_},
#define RANGE_ROW_RANGE ROW
#define RANGE_ROW_ALL(...)
#define RANGE_ROW_ONE(...)
#define RANGE_ROW_REPORT(...)
#define ALL_ROW_RANGE(...)
#define ALL_ROW_ALL ROW
#define ALL_ROW_ONE(...)
#define ALL_ROW_REPORT(...)
#define REPORT_ROW_RANGE(...)
#define REPORT_ROW_ALL(...)
#define REPORT_ROW_ONE(...)
#define REPORT_ROW_REPORT ROW
#define ONE_ROW_RANGE(...)
#define ONE_ROW_ALL(...)
#define ONE_ROW_ONE ROW
#define ONE_ROW_REPORT(...)

#define X(id, name, other, values, taker, value, help) RANGE_ROW_##taker(id, name, other, value, help)
const struct option filter_range_rows[] = {FILTER_WORDS(X){.type = VALUE_END}};
#undef X
#define X(id, name, other, values, taker, value, help) ALL_ROW_##taker(id, name, other, value, help)
const struct option filter_rows[] = {FILTER_WORDS(X){.type = VALUE_END}};
#undef X
#define X(id, name, other, values, taker, value, help) REPORT_ROW_##taker(id, name, other, value, help)
const struct option filter_report_rows[] = {FILTER_WORDS(X){.type = VALUE_END}};
#undef X

#define X(id, name, other, values, taker, value, help) ONE_ROW_##taker(id, name, other, value, help)
const struct option filter_moment_rows[] = {FILTER_WORDS(X){.type = VALUE_END}};
#undef X
