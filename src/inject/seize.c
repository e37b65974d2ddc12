/* SPDX-License-Identifier: MIT */
/* The kernel has a process's exec and the beginning of its tracing wait for each other. An exec may wait as long as the
 * owner of an interpreter likes, by a lease or a file system of his own. The kernel repeats the interrupted ptrace
 * after each signal's handler. So the handler does not return. */
#include "inject/seize.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

#include "os/monotonic.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { LEAST_NS = 100000000, AGAIN_NS = 20000000 };
#define LIMIT_NS (4 * NS_PER_S)
#define MINUTE_NS (60 * NS_PER_S)

/* Set while the thread is in ptrace. */
static _Thread_local sigjmp_buf *volatile way_out;

static int late_signal(void)
{
	return SIGRTMIN + 1;
}

static void on_late(int signal)
{
	(void)signal;
	if (way_out)
		siglongjmp(*way_out, 1);
}

/* A thread has a timer from its first seize to its end: most threads seize many. */
static pthread_key_t timer_key;
static _Thread_local timer_t timer;

static void timer_end(void *own)
{
	timer_delete(*(timer_t *)own);
}

static void prepare(void)
{
	sigaction(late_signal(), &(struct sigaction){.sa_handler = on_late}, NULL);
	pthread_key_create(&timer_key, timer_end);
}

/* Return 0 or an errno. */
static int timer_make(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = late_signal()};
	event.sigev_notify_thread_id = gettid();
	pthread_once(&once, prepare);
	if (pthread_getspecific(timer_key))
		return 0;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		return errno;
	int error = pthread_setspecific(timer_key, &timer);
	if (error)
		timer_delete(timer);
	return error;
}

/* A signal that comes just before the thread enters ptrace is not the last one. 0: no signal comes any more. */
static void timer_set(uint64_t ns)
{
	const struct itimerspec times = {.it_value = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)},
					 .it_interval = {0, AGAIN_NS}};
	timer_settime(timer, 0, &times, NULL);
}

/* Return how long a seize may wait. */
static uint64_t wait_limit_ns(struct seize_wait *wait)
{
	uint64_t minute = monotonic_now_ns() / MINUTE_NS;
	if (wait->minute != minute)
		*wait = (struct seize_wait){.minute = minute};
	return wait->spent_ns + LEAST_NS < LIMIT_NS ? LIMIT_NS - wait->spent_ns : LEAST_NS;
}

/* Seize a thread, until the timer's signal. */
static int seize(pid_t tid, uint64_t options)
{
	sigjmp_buf out;
	int error;
	if (sigsetjmp(out, 1) == 0) {
		way_out = &out;
		error = ptrace(PTRACE_SEIZE, tid, 0, options) == 0 ? 0 : errno;
	} else {
		way_out = NULL;
		/* The signal may have come behind the seize. */
		error = ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 ? 0 : ETIMEDOUT;
	}
	way_out = NULL;
	return error;
}

int seize_thread(pid_t tid, uint64_t options, struct seize_wait *wait_or_null)
{
	struct seize_wait alone = {0}, *wait = wait_or_null ? wait_or_null : &alone;
	const uint64_t limit_ns = wait_limit_ns(wait);
	int error = timer_make();
	if (error)
		return error;
	timer_set(limit_ns);
	error = seize(tid, options);
	timer_set(0);
	wait->spent_ns += error == ETIMEDOUT ? limit_ns : 0;
	return error;
}
