/* SPDX-License-Identifier: MIT */
/** xheap dx: questions in the debugger's language, one from the command line, from a file, or at a prompt. */
#ifndef XHEAP_CLI_DX_H
#define XHEAP_CLI_DX_H

#include <stdbool.h>

struct dx_command;
struct dx_session;

/** Answer a query. An exit status. */
int dx_answer(struct dx_session *session, const struct dx_command *defaults, const char *line, bool has_pager);

#endif
