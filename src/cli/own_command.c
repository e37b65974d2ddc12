/* SPDX-License-Identifier: MIT */
#include "cli/own_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

enum { SAID_BYTES = 4096 };

void own_words_add(void *context, const char *word)
{
	struct own_words *words = context;
	memory_grow(words->items, words->count + 1, words->capacity);
	words->items[words->count] = memory_resize(NULL, strlen(word) + 1, 1);
	strcpy(words->items[words->count++], word);
	words->items[words->count] = NULL;
}

void own_words_fini(struct own_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->items[i]);
	free(words->items);
	*words = (struct own_words){.count = 0};
}

_Noreturn static void become(const struct own_words *words, int output, int is_shown)
{
	char **arguments = memory_zeroed(words->count + 3, sizeof(*arguments));
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* A name that begins with '@' is for all that is begun before process 1: a shutdown kills them last. */
	arguments[0] = program_invocation_name[0] == '@' ? "@xheap" : "xheap";
	arguments[1] = DIAG_NUMBER_WORD;
	memcpy(arguments + 2, words->items, words->count * sizeof(*arguments));
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (null >= 0 && !is_shown)
		dup2(null, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execv("/proc/self/exe", arguments);
	_exit(127);
}

/* Take the first line without "xheap: ", and the number of the last one. Return the number as a negative errno. */
static int take_said(char *said, struct diag *diag)
{
	static const char prefix[] = "xheap: ";
	int number = 0;
	const char *numbered = strstr(said, "xheap-error ");
	if (numbered)
		sscanf(numbered, DIAG_NUMBER_LINE, &number);
	const char *text = !strncmp(said, prefix, sizeof(prefix) - 1) ? said + sizeof(prefix) - 1 : said;
	size_t length = strcspn(text, "\n");
	if (!length || numbered == text)
		return diag_fail(diag, number > 0 ? number : ECHILD, "xheap ended without a message");
	return diag_fail(diag, number > 0 ? number : EIO, "%.*s", (int)length, text);
}

int own_command_run(const struct own_words *words, int is_shown, struct diag *diag)
{
	int pipes[2], status = 0;
	char said[SAID_BYTES];
	size_t size = 0;
	ssize_t got;
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return diag_errno(diag, "cannot make a pipe");
	pid_t pid = fork();
	if (pid == 0)
		become(words, pipes[1], is_shown);
	close(pipes[1]);
	/* The logger that it leaves behind has closed the pipe. */
	while (pid > 0 &&
	       ((got = read(pipes[0], said + size, sizeof(said) - 1 - size)) > 0 || (got < 0 && errno == EINTR)))
		size += got > 0 ? (size_t)got : 0;
	said[size] = 0;
	close(pipes[0]);
	if (pid < 0)
		return diag_errno(diag, "cannot start a process");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* Its reader has seen enough. */
	if (is_shown && WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
		return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : take_said(said, diag);
}
