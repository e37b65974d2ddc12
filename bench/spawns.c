/* SPDX-License-Identifier: MIT */
/* Execute a program so many times, one after the other, and print the processor time of all: of this process and of the
   children, in ns for each execution. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static double seconds(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 0;
	for (int i = 0; i < count; i++) {
		pid_t pid;
		int status;
		if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0 || waitpid(pid, &status, 0) != pid ||
		    status != 0)
			return 1;
	}
	printf("%.0f\n", (seconds(RUSAGE_SELF) + seconds(RUSAGE_CHILDREN)) * 1e9 / count);
	return 0;
}
