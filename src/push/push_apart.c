/* SPDX-License-Identifier: MIT */
#include "push/push_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void become(const char *const *words)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (setsid() < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0)
		_exit(127);
	const pid_t pid = fork();
	if (pid)
		_exit(pid < 0 ? 127 : 0);
	execv("/proc/self/exe", (char *const *)words);
	_exit(127);
}

int push_begin_apart(const char *const *words, struct diag *diag)
{
	int status = 0;
	const pid_t pid = fork();
	if (pid < 0)
		return diag_errno(diag, "cannot start a process that pushes");
	if (!pid)
		become(words);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status ? diag_fail(diag, ECHILD, "cannot start a process that pushes") : 0;
}
