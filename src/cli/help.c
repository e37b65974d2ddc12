/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

static int help_run(int argc, char **argv)
{
	const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
	const struct cli_verb *verb = command && argc > 2 ? command_verb(command, argv[2]) : NULL;
	if (argc > 1 && !command)
		return command_refuse(argv[1]);
	if (verb)
		command_print_verb_help(command, verb, stdout);
	else if (command)
		command_print_help(command, stdout);
	else
		command_print_list(stdout);
	return CLI_OK;
}

static int version_run(int argc, char **argv)
{
	(void)argc, (void)argv;
	puts("xheap " XHEAP_VERSION);
	return CLI_OK;
}

const struct command command_help = {
	.name = "help",
	.usage = "[COMMAND [VERB]]",
	.summary = "show how to use xheap, or one of its commands",
	.run = help_run,
	.help = "Example:\n  xheap help heap\n  xheap help image list\n",
};

const struct command command_version = {
	.name = "version",
	.usage = "",
	.summary = "print the version",
	.run = version_run,
	.help = "Example:\n  xheap version\n",
};
