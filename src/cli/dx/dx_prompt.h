/* SPDX-License-Identifier: MIT */
/** The prompt of xheap dx, and the lines of its scripts. */
#ifndef XHEAP_CLI_DX_PROMPT_H
#define XHEAP_CLI_DX_PROMPT_H

#include "dx/command.h"

/** Do what a line of the prompt or a script says: dx, !tt, !positions, help. An exit status. */
int dx_prompt_line(struct dx_session *session, const struct dx_command *defaults, const char *line, bool has_pager);

/** Return whether the line leaves the prompt, or ends a script. */
bool dx_prompt_leaves(const char *line);

/** Ask for lines until the input ends; of the trace at `path`. An exit status. */
int dx_prompt(struct dx_session *session, const struct dx_command *defaults, const char *path);

#endif
