/* SPDX-License-Identifier: MIT */
/** The trace that a command reads, as an operand or by -session. */
#ifndef XHEAP_CLI_INPUT_H
#define XHEAP_CLI_INPUT_H

#include "base/option.h"

/** The trace that a command reads. Zero it. */
struct input {
	const char *path;      /**< NULL: not named */
	const char *session;   /**< whose trace it is; NULL: none */
	char *session_path;    /**< that trace */
	char *process_session; /**< the same as `session`, found by a process */
};

/** Take a FILE: one at a time. 0, or CLI_FAILED after a message. */
int input_take_path(struct input *input, char *word);

/** `take` of an option -session NAME that stores in a struct input: the session's trace in place of a FILE. 0, or
    CLI_FAILED after a message. */
int input_take_session(void *input, struct words *words, int number);

/** Take the trace of the session that records a process. 0, or CLI_FAILED after a message. */
int input_take_process(struct input *input, uint32_t pid);

/** Free the path of a session's trace. */
void input_fini(struct input *input);

/** The -session row of a command whose struct input lies at its group's offset. */
#define INPUT_SESSION_OPTION \
	{ \
		"session", .type = VALUE_TAKEN, .take = input_take_session, .value = "NAME", \
			   .help = "in place of FILE: what this session has recorded up to now" \
	}

#endif
