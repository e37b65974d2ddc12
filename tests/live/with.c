/* SPDX-License-Identifier: MIT */
/*
 * with [-2 FILE] [NAME=VALUE...] COMMAND [ARG...]: runs COMMAND with more in its environment and its standard error
 * in a file. As env and sh do, but without a single heap call, so that it adds no process with events to a trace.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void environment_set(char **environment, int *count, char *setting)
{
	size_t length = (size_t)(strchr(setting, '=') - setting) + 1;

	for (int i = 0; i < *count; i++)
		if (!strncmp(environment[i], setting, length)) {
			environment[i] = setting;
			return;
		}
	environment[(*count)++] = setting;
}

int main(int argc, char **argv)
{
	static char *environment[4096];
	int count = 0;

	while (count < 4000 && environ[count]) {
		environment[count] = environ[count];
		count++;
	}
	argv++;
	if (argc > 2 && !strcmp(argv[0], "-2")) {
		int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (fd < 0 || dup2(fd, 2) < 0)
			return 127;
		if (fd != 2)
			close(fd);
		argv += 2;
	}
	for (; *argv && strchr(*argv, '=') && count < 4090; argv++)
		environment_set(environment, &count, *argv);
	if (!*argv)
		return 127;
	environ = environment;
	execvp(*argv, argv);
	return errno == ENOENT ? 127 : 126;
}
