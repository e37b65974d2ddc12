/* SPDX-License-Identifier: MIT */
/** How commands that begin sessions have them pushed: --push and its like. */
#ifndef XHEAP_CLI_PUSH_START_H
#define XHEAP_CLI_PUSH_START_H

#include <stddef.h>
#include <stdint.h>

#include "cli/option_parser.h"

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
/** --service, beside them, where that is no unit. */
extern const struct option push_service_rows[];

/** Check them; is_begun: pushing begins now, so a directory has to be there. CLI_OK, or CLI_FAILED after a message. */
int push_start_check(const struct push_start *start, const char *command, bool is_begun);

/** Write them as `xheap push SESSION` takes them: "PLACE OPTIONS". CLI_OK, or CLI_FAILED after a message. */
int push_start_words(const struct push_start *start, const char *command, char *words, size_t size);

/** Begin to push the session: xheap push, which goes on by itself. CLI_OK, or CLI_FAILED after a message. */
int push_start_begin(const struct push_start *start, const char *session);

#endif
