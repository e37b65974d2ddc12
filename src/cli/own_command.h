/* SPDX-License-Identifier: MIT */
/** The command, run once more as a child: a failure of it is no failure of ours. */
#ifndef XHEAP_CLI_OWN_COMMAND_H
#define XHEAP_CLI_OWN_COMMAND_H

#include <stddef.h>

#include "base/diag.h"

/** The words of a command line under construction: copies. Zero it first. */
struct own_words {
	char **items; /**< ends with NULL */
	size_t count, capacity;
};

/** Add a word; `words` is a struct own_words. */
void own_words_add(void *words, const char *word);
void own_words_fini(struct own_words *words);

/** Run "xheap WORD...". Return 0, or a negative errno with what it printed on standard error, without "xheap: ", in
    `diag`. What it prints on standard output is shown if `is_shown`. */
int own_command_run(const struct own_words *words, int is_shown, struct diag *diag);

#endif
