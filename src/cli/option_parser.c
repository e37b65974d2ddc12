/* SPDX-License-Identifier: MIT */
#include "cli/option_parser.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

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

/* The option that the word names; what follows a '=' becomes a word of its own. */
static const struct option *option_find(char *word, const struct option *options, unsigned option_count, char **value)
{
	const char *name = word + 1 + (word[1] == '-');
	size_t length = strcspn(name, "=");
	*value = name[length] ? (char *)name + length + 1 : NULL;
	for (unsigned i = 0; i < option_count; i++)
		if (strlen(options[i].name) == length && !strncasecmp(options[i].name, name, length))
			return &options[i];
	return NULL;
}

int options_parse(int argc, char **argv, const struct option *options, unsigned option_count, void *context,
		  int (*operand)(void *context, char *word))
{
	struct words words = {argv + 1, argv + argc};
	bool is_ended = false;
	while (words.next < words.end) {
		char *word = *words.next++, *value;
		if (is_ended || word[0] != '-' || !word[1]) {
			if (operand(context, word))
				return CLI_FAILED;
			continue;
		}
		is_ended = !strcmp(word, "--");
		if (is_ended)
			continue;
		if (command_is_help_word(word)) {
			command_print_help(command_find(argv[0]), stdout);
			exit(CLI_OK);
		}
		const struct option *option = option_find(word, options, option_count, &value);
		if (!option)
			return cli_fail("%s: no such option; see xheap help %s", word, argv[0]);
		/* The word's place is free for its value, so that "-top=5" reads as "-top 5". */
		if (value)
			*--words.next = value;
		char **first = words.next;
		if (option->set(context, &words, option->number))
			return CLI_FAILED;
		if (value && words.next == first)
			return cli_fail("-%s: it takes no value", option->name);
	}
	return 0;
}

int input_take_path(struct input *input, char *word)
{
	if (input->path)
		return cli_fail("%s: one FILE at a time, and %s is named already", word, input->path);
	input->path = word;
	return 0;
}

int input_take_session(struct input *input, struct words *words)
{
	input->session = options_value(words, "session");
	free(input->session_path);
	input->session_path = input->session ? cli_session_trace(input->session) : NULL;
	return input->session_path ? input_take_path(input, input->session_path) : CLI_FAILED;
}

void input_fini(struct input *input)
{
	free(input->session_path);
}
