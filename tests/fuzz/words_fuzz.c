/* SPDX-License-Identifier: MIT */
/*
 * Command lines: the library passes words of its program to the command. The input is words with a zero behind each;
 * the table of a session's options reads them, with and without abbreviations. A value that was stored is possible.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option_text.h"
#include "cli/option_help.h"
#include "cli/option_parser.c"
#include "replay.h"
#include "session/control/option_rows.h"
#include "session/control/options.h"

enum { WORDS_MAX = 200 };

struct line {
	struct session_options session;
	struct option_pids pids;
	const char *output;
	unsigned taken, operands;
};

/* ---- what the parser needs of the command ---- */

int cli_fail(const char *format, ...)
{
	char text[4096];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length <= 0)
		abort();
	return CLI_FAILED;
}

bool command_is_help_word(const char *word)
{
	(void)word;
	return false;
}

void command_print_help(const struct command *command, FILE *out)
{
	(void)command, (void)out;
}

const struct command *command_find(const char *name)
{
	(void)name;
	return NULL;
}

/* ---- the table ---- */

/* A list, as those of the filters. */
static int take_list(void *context, struct words *words, int number)
{
	struct line *line = context;
	const char *word = options_value(words, "list");
	for (; word && options_peek(words) && options_peek(words)[0] != '-'; word = *words->next++)
		line->taken += (unsigned)number;
	return word ? 0 : CLI_FAILED;
}

static const struct option line_rows[] = {
	{"output", .letter = 'o', .type = VALUE_TEXT, OPTION_AT(struct line, output), .value = "FILE"},
	{"pid", .letter = 'p', .type = VALUE_PIDS, OPTION_AT(struct line, pids), .value = "PID"},
	{"list", .others = "lists", .type = VALUE_TAKEN, .take = take_list, .number = 1, .value = "WORD..."},
	{.type = VALUE_END},
};
static const struct option_group groups[] = {
	{line_rows, 0, false},
	{session_option_rows, offsetof(struct line, session), false},
	{NULL, 0, false},
};

static int add_operand(void *context, char *word)
{
	struct line *line = context;
	line->operands += word[0] != 0;
	return 0;
}

/* Each number is one that the option takes, and is written as it is read. */
static void check(const struct line *line)
{
	for (const struct option *row = session_option_rows; row->type != VALUE_END; row++) {
		struct session_options again = line->session;
		char word[160];
		struct diag why = {""};
		if (!row->name || !option_has_number(row) || !option_has_value(row))
			continue;
		option_word(row, &line->session, word, sizeof(word));
		/* Without the option a value may be one that cannot be given: "as many as fit". */
		if (option_number(row, &line->session) == row->initial)
			continue;
		if (option_store(row, &again, word, &why) || !option_is_same(row, &again, &line->session))
			abort();
	}
	for (unsigned i = 0; i < line->pids.count; i++)
		if (line->pids.items[i] <= 0)
			abort();
}

static void read_line(char **words, int count, bool takes_abbreviations, bool has_operands)
{
	const struct option_grammar grammar = {
		.command = "fuzz", .groups = groups, .dashes = "--", .takes_abbreviations = takes_abbreviations};
	struct line line = {.taken = 0};
	char **rest;
	session_options_init(&line.session);
	if (!options_parse(&grammar, count, words, &line, has_operands ? add_operand : NULL, &rest) &&
	    (rest < words || rest > words + count))
		abort();
	check(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int how = 0; how < 4; how++) {
		char *words[WORDS_MAX + 1] = {(char *)"fuzz"}, *copy = malloc(size + 1);
		int count = 1;
		if (!copy)
			return 0;
		memcpy(copy, data, size);
		copy[size] = 0;
		for (size_t at = 0; at < size && count < WORDS_MAX; at += strlen(copy + at) + 1)
			words[count++] = copy + at;
		words[count] = NULL;
		read_line(words, count, how & 1, how & 2);
		free(copy);
	}
	return 0;
}

const struct replay replay = {.bytes_max = 1 << 12, .cuts = 500, .flip_rounds = 20000};
