/* SPDX-License-Identifier: MIT */
#include "symbols/package.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define USR "/usr"

/* Run the package manager's query. Return its output, to be read to its end; NULL: it cannot be run. */
static FILE *query_open(char *const *arguments, pid_t *pid)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return NULL;
	*pid = fork();
	if (*pid == 0) {
		int null = open("/dev/null", O_WRONLY);
		dup2(ends[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execvp(arguments[0], arguments);
		_exit(127);
	}
	close(ends[1]);
	FILE *output = *pid > 0 ? fdopen(ends[0], "r") : NULL;
	if (!output)
		close(ends[0]);
	if (!output && *pid > 0)
		waitpid(*pid, NULL, 0);
	return output;
}

/* Packages may have a file where it lay before /bin and /lib went to /usr. */
static const char *former_path(const char *path)
{
	return strncmp(path, USR "/", sizeof(USR)) == 0 ? path + strlen(USR) : NULL;
}

/* Take a line "PACKAGE[:ARCHITECTURE][, PACKAGE...]: PATH". */
static void line_take(char *line, const char *const *paths, size_t count, char (*packages)[PACKAGE_NAME_BYTES])
{
	line[strcspn(line, "\n")] = 0;
	char *path = strstr(line, ": /");
	size_t length = strcspn(line, ":, ");
	/* "diversion by PACKAGE from: PATH" names no owner. */
	if (!path || !length || length >= PACKAGE_NAME_BYTES || line[length] == ' ')
		return;
	path += 2;
	for (size_t i = 0; i < count; i++) {
		const char *former = former_path(paths[i]);
		if (!strcmp(path, paths[i]) || (former && !strcmp(path, former)))
			snprintf(packages[i], PACKAGE_NAME_BYTES, "%.*s", (int)length, line);
	}
}

void symbols_packages(const char *const *paths, size_t count, char (*packages)[PACKAGE_NAME_BYTES])
{
	const char *arguments[4 + 2 * PACKAGE_PATHS_MAX] = {"dpkg-query", "-S", "--"};
	size_t used = 3, room = 0;
	char *line = NULL;
	pid_t pid;
	for (size_t i = 0; i < count; i++) {
		packages[i][0] = 0;
		/* A trace may come from anybody: the query takes these characters for a pattern. */
		if (paths[i][0] != '/' || strpbrk(paths[i], "*?[\\"))
			continue;
		arguments[used++] = paths[i];
		if (former_path(paths[i]))
			arguments[used++] = former_path(paths[i]);
	}
	FILE *output = used > 3 ? query_open((char *const *)arguments, &pid) : NULL;
	if (!output)
		return;
	while (getline(&line, &room, output) > 0)
		line_take(line, paths, count, packages);
	free(line);
	fclose(output);
	waitpid(pid, NULL, 0);
}
