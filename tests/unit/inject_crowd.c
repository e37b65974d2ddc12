/* SPDX-License-Identifier: MIT */
/* Tracing all threads of a process whose threads come and go all the time. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "inject/crowd.h"
#include "inject/detach.h"
#include "rounds.h"

enum { MAKERS = 4, ROUNDS = 4000, ENDING_ROUNDS = 200 };

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

/* ---- a thread that gets no processor ---- */

enum { TICK_US = 1000, ENOUGH_TICKS = 100, SHARE = 4, BUSY_ROUNDS = 20, STARVED_TICKS = 20 };

/* Counts of a thread of the crowd, which sleeps most of the time, and of one that nobody stops. */
struct ticks {
	_Atomic uint32_t crowd, own;
	_Atomic uint64_t idle; /**< of the thread that seldom gets a processor */
};

static void *tick(void *count)
{
	for (_Atomic uint32_t *ticks = count;; ++*ticks)
		usleep(TICK_US);
	return NULL;
}

/* Share one processor with others that do the same. As an idle one, get a turn of some milliseconds every few
   seconds. */
static void *be_busy(void *count)
{
	static _Atomic uint64_t ignored;
	_Atomic uint64_t *rounds = count ? count : &ignored;
	cpu_set_t all, last;
	int last_number = 0;
	CPU_ZERO(&all);
	CPU_ZERO(&last);
	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		last_number = CPU_ISSET(i, &all) ? i : last_number;
	CPU_SET(last_number, &last);
	sched_setaffinity(0, sizeof(last), &last);
	if (count)
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){.sched_priority = 0});
	for (;;)
		++*rounds;
	return NULL;
}

static pid_t begin(void (*run)(struct ticks *), struct ticks *ticks)
{
	pid_t parent = getpid(), pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		run(ticks);
	_exit(1);
}

static void run_busy(struct ticks *ticks)
{
	(void)ticks;
	be_busy(NULL);
}

static void run_crowd(struct ticks *ticks)
{
	pthread_t starved;
	pthread_create(&starved, NULL, be_busy, &ticks->idle);
	tick(&ticks->crowd);
}

/* Wait until the idle thread has begun, and waits for its next turn. */
static void wait_until_starved(const struct ticks *ticks)
{
	uint64_t before = 0;
	for (int still = 0; still < STARVED_TICKS; still++) {
		if (before != ticks->idle || !before)
			still = 0;
		before = ticks->idle;
		usleep(TICK_US);
	}
}

/* While one thread has no processor to stop on, the others are not paused for it. */
static void test_thread_without_processor(void **state)
{
	(void)state;
	struct ticks *ticks = mmap(NULL, sizeof(*ticks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(ticks != MAP_FAILED);
	pid_t busy = begin(run_busy, ticks), pid = begin(run_crowd, ticks);
	assert_true(busy > 0 && pid > 0);
	pthread_t ticker;
	assert_int_equal(pthread_create(&ticker, NULL, tick, &ticks->own), 0);
	uint32_t own = 0, crowds = 0;
	for (int round = 0; round < BUSY_ROUNDS && own < ENOUGH_TICKS; round++) {
		struct crowd crowd = {.pid = pid};
		struct diag diag = {""};
		wait_until_starved(ticks);
		crowd_seize(&crowd, &diag);
		own = ticks->own, crowds = ticks->crowd;
		int error = crowd_stop(&crowd, &diag);
		own = ticks->own - own, crowds = ticks->crowd - crowds;
		assert_int_equal(error, 0);
		assert_string_equal(diag.text, "");
		crowd_leave(&crowd);
	}
	if (own < ENOUGH_TICKS)
		print_message("the idle thread got a processor at once, each time\n");
	else if (crowds < own / SHARE)
		fail_msg("the other thread ran for %u ticks of %u", crowds, own);
	kill(pid, SIGKILL);
	kill(busy, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(waitpid(busy, NULL, 0), busy);
}

/* ---- a thread that does not stop ---- */

enum { BRIEF_NS = 1000000 };

/* A parent in vfork does not stop before its child executes or ends. */
static void run_vfork(struct ticks *ticks)
{
	ticks->own = 1;
	if (vfork() == 0) {
		ticks->own = 2;
		while (ticks->own == 2)
			usleep(TICK_US);
		_exit(0);
	}
	ticks->own = 4;
	tick(&ticks->crowd);
}

/* A thread that does not stop in time to be left stays traced: it is no other tracer's, and the next seizing finds it seized. */
static void test_thread_that_is_not_left(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("not with ThreadSanitizer, which forks in place of vfork()\n");
	skip();
#endif
	struct ticks *ticks = mmap(NULL, sizeof(*ticks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(ticks != MAP_FAILED);
	pid_t pid = begin(run_vfork, ticks);
	assert_true(pid > 0);
	while (ticks->own != 2)
		usleep(TICK_US);
	struct crowd crowd = {.pid = pid};
	struct diag diag = {""};
	assert_int_equal(crowd_seize(&crowd, &diag), 0);
	crowd_release(&crowd, BRIEF_NS);
	assert_int_equal(crowd.count, 1);
	assert_int_equal(crowd_seize(&crowd, &diag), 0);
	assert_string_equal(diag.text, "");
	assert_int_equal(crowd.count, 1);
	ticks->own = 3;
	assert_int_equal(crowd_stop(&crowd, &diag), 0);
	crowd_leave(&crowd);
	for (uint32_t before = ticks->crowd; ticks->crowd <= before + 1;)
		usleep(TICK_US);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- a process that ends while it is detached from ---- */

static void run_tick(struct ticks *ticks)
{
	tick(&ticks->crowd);
}

static void close_nothing(const struct originals *originals)
{
	(void)originals;
}

/* Nothing stays mapped in it, whatever keeps its threads from making calls. */
static void test_process_that_ends(void **state)
{
	(void)state;
	static const struct originals none = {.close = close_nothing};
	struct ticks *ticks = mmap(NULL, sizeof(*ticks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(ticks != MAP_FAILED);
	for (uint32_t i = rounds(ENDING_ROUNDS); i > 0; i--) {
		char path[64];
		struct diag diag = {""};
		struct inject_pause pause = {0};
		struct inject_rest rest = {0};
		pid_t pid = begin(run_tick, ticks);
		struct crowd crowd = {.pid = pid};
		struct pieces pieces = {.count = 1,
					.bytes = sizeof(*ticks),
					.item = {{.low = (uint64_t)ticks, .high = (uint64_t)(ticks + 1)}}};
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
		int memory = open(path, O_RDWR | O_CLOEXEC);
		assert_true(memory >= 0);
		assert_int_equal(crowd_seize(&crowd, &diag), 0);
		kill(pid, SIGKILL);
		assert_int_equal(crowd_clear(&crowd, memory, &none, &pieces, INJECT_BRIEF, &pause, &rest, &diag), 0);
		assert_int_equal(rest.bytes, 0);
		crowd_leave(&crowd);
		close(memory);
		waitpid(pid, NULL, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_that_end),
					   cmocka_unit_test(test_thread_without_processor),
					   cmocka_unit_test(test_thread_that_is_not_left),
					   cmocka_unit_test(test_process_that_ends)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
