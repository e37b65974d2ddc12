/* SPDX-License-Identifier: MIT */
/** Lines that answer at once, each of one source: those at the end of a recording, and the first one of a report. */
#ifndef XHEAP_CLI_ANSWER_LINES_H
#define XHEAP_CLI_ANSWER_LINES_H

#include <stdint.h>

struct action_input;

/** Return a line, not wider than `width` columns, for which the name is cut; 0: of any width. The caller frees it. */
char *answer_line(const char *before, const char *name, const char *after, unsigned width);

/** Return the first function of the user's code in a stack. Valid until the next call. */
const char *answer_function(struct action_input *input, uint32_t node);

/** Set *number to the most of the number that `key` sorts by, of all stacks, and return that stack's function. */
const char *answer_top_function(struct action_input *input, const char *key, uint64_t *number);

/** Return the line of the peak. The caller frees it. */
char *answer_peak_line(struct action_input *input, unsigned width);

#endif
