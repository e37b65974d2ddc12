/* SPDX-License-Identifier: MIT */
#include "cli/dx_prompt.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

int dx_prompt_line(struct dx_session *session, const struct dx_command *defaults, const char *line)
{
	return dx_answer(session, defaults, line, false);
}

int dx_prompt(struct dx_session *session, const struct dx_command *defaults)
{
	char *line = NULL;
	size_t capacity = 0;
	while (getline(&line, &capacity, stdin) >= 0) {
		line[strcspn(line, "\r\n")] = 0;
		if (*line)
			dx_prompt_line(session, defaults, line);
	}
	free(line);
	return CLI_OK;
}
