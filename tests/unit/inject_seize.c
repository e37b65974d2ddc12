/* SPDX-License-Identifier: MIT */
/* Processes whose exec waits for a file: the kernel lets nobody trace them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/seize.h"

enum { SEIZES = 15, THREADS = 20, LOOK_US = 1000 };

static const char interpreter[] = "./interpreter", script[] = "./script";

/* Make a script whose interpreter this process does not let go. Return the lease's descriptor. */
static int make_script(void)
{
	int file = open(interpreter, O_RDWR | O_CREAT | O_TRUNC, 0755);
	assert_true(file >= 0 && write(file, "x", 1) == 1);
	close(file);
	file = open(script, O_RDWR | O_CREAT | O_TRUNC, 0755);
	assert_true(file >= 0 && dprintf(file, "#!%s\n", interpreter) > 0);
	close(file);
	signal(SIGIO, SIG_IGN);
	file = open(interpreter, O_RDONLY);
	assert_int_equal(fcntl(file, F_SETLEASE, F_WRLCK), 0);
	return file;
}

/* Return whether somebody waits for a lease of this process. */
static bool is_breaking(void)
{
	char line[256], own[32];
	bool is_found = false;
	FILE *locks = fopen("/proc/locks", "re");
	snprintf(own, sizeof(own), " %d ", (int)getpid());
	while (locks && fgets(line, sizeof(line), locks))
		is_found |= strstr(line, "BREAKING") && strstr(line, own);
	fclose(locks);
	return is_found;
}

static void *execute(void *unused)
{
	char *arguments[] = {(char *)script, NULL};
	execv(script, arguments);
	return unused;
}

/* Begin a process, whose other thread executes a script if it is to. */
static pid_t begin(bool executes)
{
	pid_t pid = fork();
	pthread_t thread;
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (executes)
		pthread_create(&thread, NULL, execute, NULL);
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Seizes that share their wait do not wait one after the other: all end before the kernel breaks the lease, 45 s. */
static void test_waits_are_shared(void **state)
{
	struct seize_wait wait = {0};
#ifdef __SANITIZE_THREAD__
	print_message("not with ThreadSanitizer, which keeps a timer's signal until the call is over\n");
	skip();
#endif
	int lease = make_script();
	pid_t waiting = begin(true), other = begin(false);
	(void)state;
	while (!is_breaking())
		usleep(LOOK_US);
	for (int i = 0; i < SEIZES; i++)
		assert_int_equal(seize_thread(waiting, 0, &wait), ETIMEDOUT);
	assert_true(is_breaking());
	/* One that need not wait is seized. */
	assert_int_equal(seize_thread(other, 0, &wait), 0);
	assert_int_equal(seize_thread(other, 0, &wait), EPERM);
	end(other);
	assert_int_equal(seize_thread(other, 0, &wait), ESRCH);
	close(lease);
	end(waiting);
}

/* Return how many timers this process has, or -1. */
static int timer_count(void)
{
	char line[256];
	int count = 0;
	FILE *timers = fopen("/proc/self/timers", "re");
	if (!timers)
		return -1;
	while (fgets(line, sizeof(line), timers))
		count += strncmp(line, "ID:", 3) == 0;
	fclose(timers);
	return count;
}

static void *seize_some(void *unused)
{
	for (int i = 0; i < SEIZES; i++)
		assert_int_equal(seize_thread(getpid(), 0, NULL), EPERM);
	return unused;
}

/* A thread has one timer, and none stays when it ends. */
static void test_timers_end(void **state)
{
	pthread_t threads[THREADS];
	(void)state;
	seize_some(NULL);
	int before = timer_count();
	if (before < 0)
		skip();
	assert_int_equal(before, 1);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, seize_some, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(timer_count(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits_are_shared), cmocka_unit_test(test_timers_end)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
