/* SPDX-License-Identifier: MIT */
/**
 * Command lines by tables of options (base/option.h). Options take one dash or two, in any case; a value is the next
 * word, or follows a '='. Short letters may stand together behind one dash, and the value of the last one may follow.
 */
#ifndef XHEAP_CLI_OPTION_PARSER_H
#define XHEAP_CLI_OPTION_PARSER_H

#include "base/option.h"
#include "cli/cli.h"

/** How the command line of a command is read. */
struct option_grammar {
	const char *command; /**< or its name, a blank and a verb */
	const struct option_group *groups;
	const char *dashes;       /**< before names in messages and in --help: "-" or "--" */
	bool takes_abbreviations; /**< the beginning of a name is enough when it means one option */
	/** "--" goes to `operand`, too, and options may follow it: it stands between operands of two kinds */
	bool takes_separator;
	unsigned shown_flags; /**< --help lists only rows with these flags, of groups after the first; 0: all */
	/** Print what --help says behind the rows; NULL: nothing. */
	void (*print_notes)(FILE *out);
};

/**
 * Read the words after argv[0]. A word that is no option goes to `operand`; after "--" all do. Where
 * `operand` is NULL, reading ends at the first such word, and *rest is its place. `context` is the struct that the
 * groups' offsets count from. 0, or CLI_FAILED after a message. An option that asks for help prints it and ends the
 * process.
 */
int options_parse(const struct option_grammar *grammar, int argc, char **argv, void *context,
		  int (*operand)(void *context, char *word), char ***rest);

/** The next word as the value of the option; NULL after a message when there is none. */
const char *options_value(struct words *words, const char *option);

/** The next word, if there is one, without taking it. */
const char *options_peek(const struct words *words);

#endif
