/* SPDX-License-Identifier: MIT */
#include "cli/input.h"

#include <stdlib.h>

#include "cli/option_parser.h"

int input_take_path(struct input *input, char *word)
{
	if (input->path)
		return cli_fail("%s: one FILE at a time, and %s is named already", word, input->path);
	input->path = word;
	return 0;
}

int input_take_session(void *context, struct words *words, int number)
{
	struct input *input = context;
	(void)number;
	input->session = options_value(words, "session");
	free(input->session_path);
	input->session_path = input->session ? cli_session_trace(input->session) : NULL;
	return input->session_path ? input_take_path(input, input->session_path) : CLI_FAILED;
}

int input_take_process(struct input *input, uint32_t pid)
{
	input->session_path = cli_process_trace(pid, &input->process_session);
	input->session = input->process_session;
	return input->session_path ? input_take_path(input, input->session_path) : CLI_FAILED;
}

void input_fini(struct input *input)
{
	free(input->session_path);
	free(input->process_session);
}
