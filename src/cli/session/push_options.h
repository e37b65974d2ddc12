/* SPDX-License-Identifier: MIT */
/** The options of xheap push. */
#ifndef XHEAP_CLI_PUSH_OPTIONS_H
#define XHEAP_CLI_PUSH_OPTIONS_H

#include "cli/session/session_talk.h"
#include "push/push_labels.h"

struct push_options {
	struct session_words words; /**< the first member: session_take_words() */
	char *place;
	uint32_t every_ms;
	uint64_t queue_bytes;
	const char *queue, *token_file;
	const char *trace; /**< of a session that is over, which is pushed in place of one that records; or NULL */
	struct push_labels labels;
	bool with_lines, is_once, is_quiet, waits, is_registered;
};

extern const struct option_grammar push_grammar;

/** Read the words of the command. CLI_OK, or CLI_FAILED after a message. End the labels in any case. */
int push_options_take(struct push_options *options, int count, char **arguments);

#endif
