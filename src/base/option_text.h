/* SPDX-License-Identifier: MIT */
/** Options as texts: their values in a trace and on a command line, and the possible values in --help and in
    messages. */
#ifndef XHEAP_BASE_OPTION_TEXT_H
#define XHEAP_BASE_OPTION_TEXT_H

#include <stddef.h>

struct option;

/** The stored value as the trace has it, cut to `size` bytes. */
void option_text(const struct option *option, const void *context, char *text, size_t size);

/** The stored value as a word that option_store() takes, cut to `size` bytes. */
void option_word(const struct option *option, const void *context, char *word, size_t size);

/** Which values are possible, for a message: "from 64K to 1M", "text, csv or json"; "" when all are. */
void option_range_text(const struct option *option, char *text, size_t size);

/** Write the text that --help adds to the row's help: " (64K to 1M; default 64K)", ": text (default), csv or json"; ""
    for none. */
void option_help_text(const struct option *option, char *text, size_t size);

#endif
