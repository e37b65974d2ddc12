/* SPDX-License-Identifier: MIT */
#include "base/glibc_functions.h"

#include <asm/unistd.h>
#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(__NR_close_range, first, last, flags);
}

int execveat(int directory, const char *path, char *const *words, char *const *environment, int flags)
{
	return (int)syscall(__NR_execveat, directory, path, words, environment, flags);
}

const char *sigabbrev_np(int number)
{
	static const char *const names[] = {
		[SIGHUP] = "HUP",       [SIGINT] = "INT",   [SIGQUIT] = "QUIT",   [SIGILL] = "ILL",
		[SIGTRAP] = "TRAP",     [SIGABRT] = "ABRT", [SIGBUS] = "BUS",     [SIGFPE] = "FPE",
		[SIGKILL] = "KILL",     [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV",   [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE",     [SIGALRM] = "ALRM", [SIGTERM] = "TERM",   [SIGCHLD] = "CHLD",
		[SIGSTKFLT] = "STKFLT", [SIGCONT] = "CONT", [SIGSTOP] = "STOP",   [SIGTSTP] = "TSTP",
		[SIGTTIN] = "TTIN",     [SIGTTOU] = "TTOU", [SIGURG] = "URG",     [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ",     [SIGPROF] = "PROF", [SIGWINCH] = "WINCH", [SIGVTALRM] = "VTALRM",
		[SIGPOLL] = "POLL",     [SIGPWR] = "PWR",   [SIGSYS] = "SYS"};
	return number > 0 && (size_t)number < sizeof(names) / sizeof(*names) ? names[number] : NULL;
}

const char *strerrordesc_np(int error)
{
	return strerror(error);
}

int posix_spawn_file_actions_addclosefrom_np(void *actions, int first)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *found;
	int error = 0;
	while (directory && !error && (found = readdir(directory)))
		if (found->d_name[0] != '.' && atoi(found->d_name) >= first)
			error = posix_spawn_file_actions_addclose(actions, atoi(found->d_name));
	if (directory)
		closedir(directory);
	return error;
}
