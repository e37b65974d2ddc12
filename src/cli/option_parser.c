/* SPDX-License-Identifier: MIT */
#include "cli/option_parser.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/option_help.h"

enum { VALUE_SHOWN_MAX = 60 /* bytes of a refused value in a message */ };

const char *options_peek(const struct words *words)
{
	return words->next < words->end ? *words->next : NULL;
}

const char *options_value(struct words *words, const char *option)
{
	if (words->next < words->end)
		return *words->next++;
	cli_fail("-%s: a value is missing", option);
	return NULL;
}

/* ---- one command line ---- */

struct command_line {
	const struct option_grammar *grammar;
	struct words words;
	void *context;
};

/* An option as it was found: the row, and what stores its value. */
struct found {
	const struct option *option;
	void *context;
};

static struct found found_at(const struct command_line *reading, const struct option_group *group,
			     const struct option *option)
{
	return (struct found){option, (char *)reading->context + group->offset};
}

static int take_value(const struct command_line *reading, struct found found, const char *word)
{
	struct diag why = {""};
	if (!option_store(found.option, found.context, word, &why))
		return 0;
	return cli_fail("%s%s%s%.*s%s: %s", reading->grammar->dashes, found.option->name, word ? " " : "",
			VALUE_SHOWN_MAX, word ? word : "", word && strlen(word) > VALUE_SHOWN_MAX ? "..." : "",
			why.text);
}

/* The option takes words of its own. `value` is what follows the '=' in its word, or NULL: it becomes the next word, so
   that "-top=5" reads as "-top 5". */
static int take_words(struct command_line *reading, struct found found, char *value, const char *typed)
{
	if (value)
		*--reading->words.next = value;
	char **first = reading->words.next;
	if (found.option->take(found.context, &reading->words, found.option->number))
		return CLI_FAILED;
	if (value && reading->words.next == first)
		return cli_fail("%s: %s%s takes no value", typed, reading->grammar->dashes, found.option->name);
	return 0;
}

/* `typed` is the option's word. */
static int take_option(struct command_line *reading, struct found found, char *value, const char *typed)
{
	if (found.option->type == VALUE_TAKEN)
		return take_words(reading, found, value, typed);
	if (!option_has_value(found.option))
		return value ? cli_fail("%s: %s%s takes no value", typed, reading->grammar->dashes, found.option->name)
			     : take_value(reading, found, NULL);
	const char *next = options_peek(&reading->words), *bare = found.option->bare;
	if (!value && bare && !(next && option_choice_find(found.option->choices, next)))
		return take_value(reading, found, bare);
	if (!value && !next)
		return cli_fail("%s: a value is missing; see xheap help %s", typed, reading->grammar->command);
	return take_value(reading, found, value ? value : *reading->words.next++);
}

/* ---- names ---- */

static int refuse_unknown(const struct command_line *reading, const char *typed, const char *name, size_t length)
{
	const char *nearest = options_nearest(reading->grammar->groups, name, length);
	if (nearest)
		return cli_fail("%s: no such option; the nearest is %s%s; see xheap help %s", typed,
				strlen(nearest) > 1 ? reading->grammar->dashes : "-", nearest,
				reading->grammar->command);
	return cli_fail("%s: no such option; see xheap help %s", typed, reading->grammar->command);
}

static int refuse_ambiguous(const struct command_line *reading, const char *typed, const char *name, size_t length)
{
	char names[300] = "";
	size_t end = 0;
	for (const struct option_group *group = reading->grammar->groups; group->rows; group++)
		for (const struct option *row = group->rows; row->type != VALUE_END && end < sizeof(names); row++) {
			const char *other = row->name;
			if (other && !strncasecmp(other, name, length))
				end += (size_t)snprintf(names + end, sizeof(names) - end, "%s%s%s", end ? ", " : "",
							reading->grammar->dashes, other);
		}
	return cli_fail("%s: several options begin so: %s", typed, names);
}

/* Letters behind one dash; what follows the letter of an option with a value is the value. */
static int take_letters(struct command_line *reading, const char *typed)
{
	for (const char *letter = typed + 1; *letter; letter++) {
		const struct option_group *group;
		const struct option *option = options_find_letter(reading->grammar->groups, *letter, &group);
		if (!option)
			return refuse_unknown(reading, typed, typed + 1, strcspn(typed + 1, "="));
		bool has_value = option_has_value(option);
		char *value = has_value && letter[1] ? (char *)letter + 1 : NULL;
		if (take_option(reading, found_at(reading, group, option), value, typed))
			return CLI_FAILED;
		if (has_value)
			return 0;
	}
	return 0;
}

static int take_word(struct command_line *reading, char *word)
{
	const struct option_grammar *grammar = reading->grammar;
	bool has_two_dashes = word[1] == '-';
	const char *name = word + 1 + has_two_dashes;
	size_t length = strcspn(name, "=");
	const struct option_group *group;
	const struct option *option;
	char *value = name[length] ? (char *)name + length + 1 : NULL;
	bool is_letter = !has_two_dashes && !word[2] && options_find_letter(grammar->groups, word[1], &group);
	if (is_letter)
		return take_letters(reading, word);
	unsigned count = options_find(grammar->groups, name, length, grammar->takes_abbreviations, &group, &option);
	if (count > 1)
		return refuse_ambiguous(reading, word, name, length);
	if (count)
		return take_option(reading, found_at(reading, group, option), value, word);
	if (!has_two_dashes && options_find_letter(grammar->groups, word[1], &group))
		return take_letters(reading, word);
	return refuse_unknown(reading, word, name, length);
}

int options_parse(const struct option_grammar *grammar, int argc, char **argv, void *context,
		  int (*operand)(void *context, char *word), char ***rest)
{
	struct command_line reading = {grammar, {argv + 1, argv + argc}, context};
	struct words *words = &reading.words;
	bool is_ended = false;
	int status = 0;
	while (!status && words->next < words->end) {
		char *word = *words->next;
		bool is_operand = is_ended || word[0] != '-' || !word[1];
		if (is_operand && !operand)
			break;
		words->next++;
		if (is_operand) {
			status = operand(context, word) ? CLI_FAILED : 0;
		} else if (!strcmp(word, "--") && grammar->takes_separator && operand) {
			status = operand(context, word) ? CLI_FAILED : 0;
		} else if (!strcmp(word, "--")) {
			is_ended = true;
		} else if (command_is_help_word(word)) {
			command_print_help_of(grammar->command, stdout);
			exit(CLI_OK);
		} else {
			status = take_word(&reading, word);
		}
	}
	if (rest)
		*rest = words->next;
	return status;
}
