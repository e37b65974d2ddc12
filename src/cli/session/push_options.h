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
	struct push_labels labels;
	bool with_lines, is_once, is_quiet, waits;
};

/** How a command that begins a session has it pushed. Zero it. */
struct push_start {
	const char *place; /**< NULL: nothing is pushed */
	uint32_t every_ms; /**< 0: as xheap push has it */
	const char *service, *token_file;
	const char **labels;
	size_t label_count, label_capacity;
};

/** The options --push, ..., which store in a struct push_start. */
extern const struct option push_start_rows[];

/** Check them. CLI_OK, or CLI_FAILED after a message. */
int push_start_check(const struct push_start *start, const char *command);

/** Begin to push the session: xheap push, which goes on by itself. CLI_OK, or CLI_FAILED after a message. */
int push_start_begin(const struct push_start *start, const char *session);

extern const struct option_grammar push_grammar;

/** Read the words of the command. CLI_OK, or CLI_FAILED after a message. End the labels in any case. */
int push_options_take(struct push_options *options, int count, char **arguments);

#endif
