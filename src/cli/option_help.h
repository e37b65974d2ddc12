/* SPDX-License-Identifier: MIT */
/** Tables of options as --help lists them: names, what they do, and which values they take, in lines of a terminal. */
#ifndef XHEAP_CLI_OPTION_HELP_H
#define XHEAP_CLI_OPTION_HELP_H

#include <stdbool.h>
#include <stdio.h>

struct option_grammar;

/** Print the rows as --help lists them. */
void options_print_help(const struct option_grammar *grammar, FILE *out);

/** Whether the word asks for help: --help, -h, -?. */
bool command_is_help_word(const char *word);

#endif
