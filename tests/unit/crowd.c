/* SPDX-License-Identifier: MIT */
/* Tracing all threads of a process whose threads come and go all the time. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "inject/crowd.h"
#include "rounds.h"

enum { MAKERS = 4, ROUNDS = 4000 };

static void *brief(void *unused)
{
	return unused;
}

/* One thread after the other, each of which ends at once. */
static void *make_threads(void *unused)
{
	for (pthread_t thread;;)
		if (pthread_create(&thread, NULL, brief, NULL) == 0)
			pthread_join(thread, NULL);
	return unused;
}

static pid_t begin_threads(void)
{
	pid_t parent = getpid(), pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_t maker;
	for (int i = 1; i < MAKERS && getppid() == parent; i++)
		pthread_create(&maker, NULL, make_threads, NULL);
	make_threads(NULL);
	_exit(1);
}

/* A thread that ends just when it would be traced is none; it is no reason to give up the others. */
static void test_threads_that_end(void **state)
{
	(void)state;
	pid_t pid = begin_threads();
	assert_true(pid > 0);
	for (uint32_t i = rounds(ROUNDS); i > 0; i--) {
		struct crowd crowd = {.pid = pid};
		struct diag diag = {""};
		int error = crowd_seize(&crowd, &diag);
		assert_string_equal(diag.text, "");
		assert_int_equal(error, 0);
		assert_true(crowd.count > 0);
		crowd_leave(&crowd);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_that_end)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
