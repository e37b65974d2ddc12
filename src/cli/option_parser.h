/* SPDX-License-Identifier: MIT */
/** Options as a table: words with one dash or two, in any case; values follow as the next words, the first also after
    '='. */
#ifndef XHEAP_CLI_OPTION_PARSER_H
#define XHEAP_CLI_OPTION_PARSER_H

#include "cli/cli.h"

/** The words of a command that are still to be read. */
struct words {
	char **next, **end;
};

struct option {
	const char *name; /**< without dashes */
	/** Take what the option needs; `number` is the table's. 0, or CLI_FAILED after a message. */
	int (*set)(void *context, struct words *words, int number);
	int number;
};

/**
 * Read the words after argv[0]. A word that is no option goes to `operand`; all are operands after "--".
 * 0, or CLI_FAILED after a message.
 */
int options_parse(int argc, char **argv, const struct option *options, unsigned option_count, void *context,
		  int (*operand)(void *context, char *word));

/** The next word as the value of the option; NULL after a message when there is none. */
const char *options_value(struct words *words, const char *option);

/** The next word, if there is one, without taking it. */
const char *options_peek(const struct words *words);

/** What a command reads. Zero it. */
struct input {
	const char *path;    /**< NULL: not named */
	const char *session; /**< whose trace it is; NULL: none */
	char *session_path;  /**< that trace */
};

/** Take a FILE: one at a time. 0, or CLI_FAILED after a message. */
int input_take_path(struct input *input, char *word);

/** Take the session that follows as a word in place of a FILE. 0, or CLI_FAILED after a message. */
int input_take_session(struct input *input, struct words *words);
void input_fini(struct input *input);

#endif
