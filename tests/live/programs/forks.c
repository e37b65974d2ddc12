/* SPDX-License-Identifier: MIT */
/*
 * forks threads     threads fork while others allocate; the children allocate
 * forks server      a server that forks 100 children, which use and free what they inherited
 * forks deep        a child of a child of a child
 * forks privileges  no descriptor, no root directory, no privilege, and then a child
 * forks vfork       children that share the parent's memory: vfork, posix_spawn, clone
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "expect.h"

extern char **environ;

__attribute__((noinline)) static void pairs(int count)
{
	for (int i = 0; i < count; i++) {
		void *block = malloc(40 + (size_t)i % 100);
		EXPECT(block);
		free(block);
	}
}

static void child_expect(pid_t pid, int status_expected)
{
	int status = -1;

	EXPECT(pid > 0);
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == status_expected);
}

static volatile int stop;

static void *run_busy(void *unused)
{
	while (!stop)
		pairs(50);
	return unused;
}

static void *run_forks(void *unused)
{
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();
		if (!pid) {
			pairs(30);
			_exit(3);
		}
		child_expect(pid, 3);
	}
	return unused;
}

static int test_threads(void)
{
	pthread_t busy[2], forking[2];

	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_create(&busy[i], NULL, run_busy, NULL));
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_create(&forking[i], NULL, run_forks, NULL));
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_join(forking[i], NULL));
	stop = 1;
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_join(busy[i], NULL));
	return 0;
}

static int test_server(void)
{
	char *inherited = strdup("inherited");

	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();
		if (!pid) {
			EXPECT(!strcmp(inherited, "inherited"));
			free(inherited);
			pairs(20);
			exit(i % 50);
		}
		pairs(2);
		child_expect(pid, i % 50);
	}
	free(inherited);
	return 0;
}

static int test_deep(void)
{
	for (int depth = 0; depth < 5; depth++) {
		pairs(10);
		fflush(stdout);
		pid_t pid = fork();
		if (pid) {
			child_expect(pid, 0);
			if (depth)
				_exit(0);
			return 0;
		}
	}
	pairs(10);
	_exit(0);
}

static int test_privileges(void)
{
	pairs(20);
	if (geteuid() == 0) {
		EXPECT(!mkdir("empty", 0700) && !chdir("empty"));
		EXPECT(!chroot("."));
		EXPECT(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
	}
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	pairs(20);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();
		if (!pid) {
			pairs(50);
			_exit(4);
		}
		child_expect(pid, 4);
	}
	pairs(20);
	_exit(0);
}

static int run_clone(void *unused)
{
	(void)unused;
	pairs(10);
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

static int test_vfork(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	char *arguments[] = {"true", NULL};

	for (int i = 0; i < 20; i++) {
		pid_t pid = vfork();
		if (!pid) {
			pairs(5);
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		child_expect(pid, 0);
		pid = vfork();
		if (!pid)
			_exit(5);
		child_expect(pid, 5);
		EXPECT(!posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ));
		child_expect(pid, 0);
		EXPECT(posix_spawn(&pid, "/nonexistent", NULL, NULL, arguments, environ) == ENOENT);
		child_expect(clone(run_clone, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL), 0);
		pairs(5);
	}
	return 0;
}

static const struct named_test tests[] = {
	{"threads", test_threads},       {"server", test_server}, {"deep", test_deep},
	{"privileges", test_privileges}, {"vfork", test_vfork},
};

int main(int argc, char **argv)
{
	return named_test_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
