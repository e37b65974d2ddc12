/* SPDX-License-Identifier: MIT */
/** A line of the debugger: "dx", options, an expression, format specifiers; and its answer. */
#ifndef XHEAP_DX_COMMAND_H
#define XHEAP_DX_COMMAND_H

#include "dx/language/parser.h"
#include "dx/model/debugger.h"
#include "dx/print/print.h"

/** A line, read. */
struct dx_command {
	struct dx_layout layout;
	enum dx_format format;
	bool wants_help;     /**< -h */
	bool is_naive;       /**< -noPlan: nothing is evaluated in another way than it is written */
	size_t memory_bytes; /**< -memory */
	const char *text;    /**< the expression with its specifiers, a part of the line */
	uint64_t steps_max;  /**< elements that operators may take; 0: any number */
	const volatile sig_atomic_t *is_interrupted; /**< set by a signal handler; NULL: nothing interrupts */
	const bool *is_cancelled;                    /**< the same, for other threads */
};

/** How a line ended. */
enum dx_status {
	DX_DONE,
	DX_FAILED,  /**< the result is an error */
	DX_REFUSED, /**< the line is no query; the reason, with a line under the text, is written to `errors` */
	DX_STOPPED  /**< interrupted, or beyond a limit; the reason is written to `errors` */
};

/** Return the line behind blanks and a prompt "0:000> " or "0:0:000> ". */
const char *dx_skip_prompt(const char *line);

/** Take a prompt "0:000> ", the word dx and options from the front of the line; *command has the defaults before. 0, or
    -EINVAL with the reason in `diag`. */
int dx_command_parse(const char *line, struct dx_command *command, struct diag *diag);

/** Evaluate the expression and write the answer. */
enum dx_status dx_command_run(struct dx_session *session, const struct dx_command *command, struct sink *out,
			      struct sink *errors);

#endif
