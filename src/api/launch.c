/* SPDX-License-Identifier: MIT */
#include "api/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/monotonic.h"
#include "os/proc.h"

extern char **environ;

/* ---- the command ---- */

/* Where the command's words go; none of those that it has others for. */
static int file_for_words(void)
{
	int memory = memfd_create("xheap-errors", MFD_CLOEXEC);
	int file = memory < 0 ? -1 : fcntl(memory, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (memory >= 0)
		close(memory);
	return file;
}

/* Its last line, without who says it; the error number that it gives, negative, else -EIO. */
static int take_words(int file, struct diag *diag)
{
	char text[2048];
	ssize_t size = pread(file, text, sizeof(text) - 1, 0);
	if (size <= 0)
		return -EIO;
	text[size] = 0;
	while (size > 0 && text[size - 1] == '\n')
		text[--size] = 0;
	char *line = strrchr(text, '\n');
	int error = EIO;
	/* The number comes last, if there is one. */
	if (sscanf(line ? line + 1 : text, DIAG_NUMBER_LINE, &error) == 1 && line) {
		*line = 0;
		line = strrchr(text, '\n');
	}
	line = line ? line + 1 : text;
	return diag_fail(diag, error, "%s", !strncmp(line, "xheap: ", 7) ? line + 7 : line);
}

/* With none of the program's descriptors but these, none of its signals blocked or ignored. */
static int spawn(const char *command, const char *const *words, int file, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	int error = posix_spawn_file_actions_init(&actions);
	if (error)
		return error;
	error = posix_spawnattr_init(&attributes);
	for (int fd = 0; fd < 2 && !error; fd++)
		error = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, file, STDERR_FILENO);
	if (!error)
		error = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (!error) {
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setsigdefault(&attributes, &all);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		error = posix_spawnp(pid, command, &actions, &attributes, (char *const *)words, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

/* The same words, with one that asks for the error number; NULL: no memory. */
static const char **asking_words(const char *const *words)
{
	size_t count = 0;
	while (words[count])
		count++;
	const char **asking = calloc(count + 2, sizeof(*asking));
	for (size_t i = 0; asking && i < count; i++)
		asking[i + (i > 0)] = words[i];
	if (asking)
		asking[1] = DIAG_NUMBER_WORD;
	return asking;
}

int command_run(const char *command, const char *const *plain_words, struct diag *diag)
{
	const char *named = command ? command : secure_getenv("XHEAP");
	int status = 0, file = file_for_words();
	pid_t pid, got;
	if (file < 0)
		return diag_errno(diag, "cannot run the command xheap");
	named = named && *named ? named : "xheap";
	const char **words = asking_words(plain_words);
	int error = words ? spawn(named, words, file, &pid) : ENOMEM;
	free(words);
	if (error) {
		close(file);
		return diag_fail(diag, error, "cannot run the command %s: %s%s", named, strerror(error),
				 error == ENOENT && !strchr(named, '/') ? " in PATH; XHEAP names its path" : "");
	}
	while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
		;
	/* A program that ignores or collects its children's ends leaves no status: then it is known by what was
	   said. */
	if (got < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		error = take_words(file, diag);
	close(file);
	if (got < 0)
		return diag->text[0] ? error : 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return diag_fail(diag, -error, "the command %s failed with status %d", named, status);
}

/* ---- processes that stand ---- */

__attribute__((noreturn)) static void become(const char *file, char *const arguments[], char *const environment[],
					     pid_t tracer, int failure)
{
	if (tracer)
		prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
		execvpe(file, arguments, environment ? environment : environ);
	int error = errno;
	if (write(failure, &error, sizeof(error)) != (ssize_t)sizeof(error))
		_exit(126);
	_exit(127);
}

/* Return whether the process is stopped at its exec. Another waiting thread of the program may have got the stop, so
   the process's state counts, too. */
static bool wait_for_exec(pid_t pid)
{
	for (int status;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			return WIFSTOPPED(status);
		if ((got < 0 && errno != EINTR) || proc_state(pid) == 't')
			return got >= 0;
		monotonic_pause(500000);
	}
}

/* Why it did not execute the file. */
static int failed_exec(int failure, const char *file, struct diag *diag)
{
	int error;
	if (read(failure, &error, sizeof(error)) != (ssize_t)sizeof(error))
		error = EIO;
	return diag_fail(diag, error, "cannot run %s: %s", file, strerror(error));
}

/* It stops at its exec for its tracer; a stop signal, delivered as it is let go of, makes it stay so. */
int suspended_create(const char *file, char *const arguments[], char *const environment[], pid_t tracer, pid_t *pid,
		     struct diag *diag)
{
	int failure[2], error = 0;
	*pid = 0;
	if (pipe2(failure, O_CLOEXEC | O_NONBLOCK) != 0)
		return diag_errno(diag, "cannot run %s", file);
	pid_t child = fork();
	if (child == 0)
		become(file, arguments, environment, tracer, failure[1]);
	if (child < 0)
		error = diag_errno(diag, "cannot run %s", file);
	else if (!wait_for_exec(child))
		error = failed_exec(failure[0], file, diag);
	else if (ptrace(PTRACE_DETACH, child, 0, SIGSTOP) != 0) {
		error = diag_errno(diag, "cannot let go of %s", file);
		suspended_end(child);
	}
	close(failure[0]);
	close(failure[1]);
	if (!error)
		*pid = child;
	return error;
}

int suspended_resume(pid_t pid, struct diag *diag)
{
	return kill(pid, SIGCONT) == 0 ? 0 : diag_errno(diag, "cannot resume process %d", (int)pid);
}

void suspended_end(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
