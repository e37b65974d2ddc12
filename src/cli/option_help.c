/* SPDX-License-Identifier: MIT */
#include "cli/option_help.h"

#include <string.h>
#include <strings.h>

#include "base/option_text.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"

enum { NAME_INDENT = 2, TEXT_COLUMN = 26, CHOICE_COLUMN = 28, CHOICE_TEXT_COLUMN = 43 };

/* Go to the column; a text that is too long for what stands before it begins on the next line. */
static void go_to(FILE *out, int at, int column)
{
	fprintf(out, "%s%*s", at + 2 > column ? "\n" : "", at + 2 > column ? column : column - at, "");
}

static void print_choices(FILE *out, const struct option *option)
{
	for (const struct option_choice *choice = option->choices; choice->name; choice++) {
		char text[200];
		bool is_initial = option->type == VALUE_CHOICE && choice->number == option->initial;
		int at = fprintf(out, "%*s%s", CHOICE_COLUMN, "", choice->name);
		go_to(out, at, CHOICE_TEXT_COLUMN);
		snprintf(text, sizeof(text), "%s%s", choice->help, is_initial ? " (default)" : "");
		cli_print_words(out, text, CHOICE_TEXT_COLUMN, cli_help_width(out));
	}
}

static void print_option(FILE *out, const struct option *option, const char *dashes)
{
	char more[400], text[600];
	int at = fprintf(out, "%*s", NAME_INDENT, "");
	if (option->letter)
		at += fprintf(out, "-%c, ", option->letter);
	at += fprintf(out, "%s%s", strlen(option->name) > 1 ? dashes : "-", option->name);
	if (option->value)
		at += fprintf(out, " %s", option->value);
	option_help_text(option, more, sizeof(more));
	snprintf(text, sizeof(text), "%s%s", option->help, more);
	go_to(out, at, TEXT_COLUMN);
	cli_print_words(out, text, TEXT_COLUMN, cli_help_width(out));
	if (option->choices && option->choices->help)
		print_choices(out, option);
}

static void print_title(FILE *out, const char *title, bool is_first)
{
	if (!is_first)
		putc('\n', out);
	cli_print_words(out, title, 0, cli_help_width(out));
}

void options_print_help(const struct option_grammar *grammar, FILE *out)
{
	bool is_first = true;
	for (const struct option_group *group = grammar->groups; group->rows; group++)
		for (const struct option *option = group->rows; option->type != VALUE_END; option++) {
			unsigned shown = group == grammar->groups ? 0 : grammar->shown_flags;
			if (group->is_hidden || !option->help || (option->flags & shown) != shown)
				continue;
			if (option->type == VALUE_TITLE)
				print_title(out, option->help, is_first);
			else
				print_option(out, option, grammar->dashes);
			is_first = false;
		}
	if (grammar->print_notes)
		grammar->print_notes(out);
}

bool command_is_help_word(const char *word)
{
	return !strcasecmp(word, "--help") || !strcasecmp(word, "-help") || !strcmp(word, "-h") || !strcmp(word, "-?");
}
