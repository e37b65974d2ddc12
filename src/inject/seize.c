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

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { LIMIT_S = 4, AGAIN_NS = 20000000 };

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

static void handle_late(void)
{
	sigaction(late_signal(), &(struct sigaction){.sa_handler = on_late}, NULL);
}

/* A signal that comes just before the thread enters ptrace is not the last one. */
static int timer_begin(timer_t *timer)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct itimerspec times = {.it_value = {LIMIT_S, 0}, .it_interval = {0, AGAIN_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = late_signal()};
	event.sigev_notify_thread_id = gettid();
	pthread_once(&once, handle_late);
	if (timer_create(CLOCK_MONOTONIC, &event, timer) != 0)
		return errno;
	timer_settime(*timer, 0, &times, NULL);
	return 0;
}

int seize_thread(pid_t tid, uint64_t options)
{
	sigjmp_buf out;
	timer_t timer;
	int error = timer_begin(&timer);
	if (error)
		return error;
	if (sigsetjmp(out, 1) == 0) {
		way_out = &out;
		error = ptrace(PTRACE_SEIZE, tid, 0, options) == 0 ? 0 : errno;
	} else {
		way_out = NULL;
		/* The signal may have come behind the seize. */
		error = ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 ? 0 : ETIMEDOUT;
	}
	way_out = NULL;
	timer_delete(timer);
	return error;
}
