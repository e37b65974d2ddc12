/* SPDX-License-Identifier: MIT */
/* Prints whatever a program can see of itself that a tracer might change. Traced and untraced must print the same. */
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "expect.h"

extern char **environ;

static void show_descriptors(void)
{
	struct stat status;

	for (int fd = 0; fd < 1024; fd++)
		if (!fstat(fd, &status))
			printf("fd %d %o\n", fd, status.st_mode & S_IFMT);
}

static void show_environment(void)
{
	for (char **at = environ; *at; at++)
		printf("env %s\n", strncmp(*at, "PWD=", 4) && strncmp(*at, "OLDPWD=", 7) ? *at : "PWD");
}

static void show_signals(void)
{
	sigset_t mask, pending;
	stack_t stack;

	EXPECT(!sigprocmask(SIG_SETMASK, NULL, &mask) && !sigpending(&pending) && !sigaltstack(NULL, &stack));
	printf("alternate stack %d\n", stack.ss_flags);
	for (int number = 1; number < 65; number++) {
		struct sigaction action;
		if (sigaction(number, NULL, &action))
			continue;
		int how = action.sa_handler == SIG_DFL ? 0 : action.sa_handler == SIG_IGN ? 1 : 2;
		printf("signal %d %d %d %d\n", number, how, sigismember(&mask, number), sigismember(&pending, number));
	}
}

static void show_limits(void)
{
	for (int resource = 0; resource < 16; resource++) {
		struct rlimit limit;
		EXPECT(!getrlimit(resource, &limit));
		printf("limit %d %lu %lu\n", resource, limit.rlim_cur, limit.rlim_max);
	}
	for (int which = 0; which < 3; which++) {
		struct itimerval timer;
		EXPECT(!getitimer(which, &timer));
		printf("timer %d %ld %ld\n", which, timer.it_value.tv_sec, timer.it_interval.tv_usec);
	}
}

/* Lines of /proc/self/status that do not depend on memory, time or numbers of processes. */
static void show_status(void)
{
	static const char *const kept[] = {
		"Name:",   "Umask:",      "State:",   "TracerPid:",    "Uid:",         "Gid:",
		"FDSize:", "Groups:",     "Threads:", "SigPnd:",       "ShdPnd:",      "SigBlk:",
		"SigIgn:", "SigCgt:",     "CapInh:",  "CapPrm:",       "CapEff:",      "CapBnd:",
		"CapAmb:", "NoNewPrivs:", "Seccomp:", "Cpus_allowed:", "CoreDumping:", "THP_enabled:"};
	char line[1000];
	FILE *file = fopen("/proc/self/status", "r");

	EXPECT(file);
	while (fgets(line, sizeof(line), file))
		for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
			if (!strncmp(line, kept[i], strlen(kept[i])))
				fputs(line, stdout);
	fclose(file);
}

static void show_process(char **argv)
{
	char name[16] = "", directory[PATH_MAX];
	struct sched_param parameter;

	EXPECT(!prctl(PR_GET_NAME, name) && getcwd(directory, sizeof(directory)));
	EXPECT(!sched_getparam(0, &parameter));
	printf("argv %s comm %s dumpable %d personality %x nice %d policy %d %d\n", argv[0], name,
	       prctl(PR_GET_DUMPABLE), personality(0xffffffff), getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
	       parameter.sched_priority);
	int death = -1, reaper = -1;
	EXPECT(!prctl(PR_GET_PDEATHSIG, &death) && !prctl(PR_GET_CHILD_SUBREAPER, &reaper));
	printf("death %d reaper %d slack %d keepcaps %d leader %d %d\n", death, reaper, prctl(PR_GET_TIMERSLACK),
	       prctl(PR_GET_KEEPCAPS), getpgrp() == getpid(), getsid(0) == getpid());
}

int main(int argc, char **argv)
{
	(void)argc;
	show_descriptors();
	show_environment();
	show_signals();
	show_limits();
	show_status();
	show_process(argv);
	return 0;
}
