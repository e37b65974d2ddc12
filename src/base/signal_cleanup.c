/* SPDX-License-Identifier: MIT */
#include "base/signal_cleanup.h"

#include <assert.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

enum { CLEANUPS_MAX = 16, ENDS_COUNT = 7 };

/* By default each of them ends a program at once. */
static const int ends[ENDS_COUNT] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ};

static struct signal_cleanup {
	void (*undo)(const void *context);
	const void *context;
	pid_t owner;
} cleanups[CLEANUPS_MAX];
static unsigned cleanup_count, hold_depth;
static sigset_t before_hold;

static sigset_t ends_set(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (unsigned i = 0; i < ENDS_COUNT; i++)
		sigaddset(&set, ends[i]);
	return set;
}

/* The default action is back by now, and takes place when this handler returns. */
static void on_end(int number)
{
	for (unsigned i = cleanup_count; i-- > 0;)
		if (cleanups[i].owner == getpid())
			cleanups[i].undo(cleanups[i].context);
	raise(number);
}

static void handlers_install(void)
{
	struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND, .sa_mask = ends_set()}, present;
	for (unsigned i = 0; i < ENDS_COUNT; i++)
		if (!sigaction(ends[i], NULL, &present) && !(present.sa_flags & SA_SIGINFO) &&
		    present.sa_handler == SIG_DFL)
			sigaction(ends[i], &action, NULL);
}

void signal_cleanup_hold(void)
{
	const sigset_t set = ends_set();
	if (!hold_depth++)
		sigprocmask(SIG_BLOCK, &set, &before_hold);
}

void signal_cleanup_release(void)
{
	assert(hold_depth > 0);
	if (!--hold_depth)
		sigprocmask(SIG_SETMASK, &before_hold, NULL);
}

void signal_cleanup_add(void (*undo)(const void *context), const void *context)
{
	assert(cleanup_count < CLEANUPS_MAX);
	signal_cleanup_hold();
	cleanups[cleanup_count++] = (struct signal_cleanup){undo, context, getpid()};
	handlers_install();
	signal_cleanup_release();
}

void signal_cleanup_remove(const void *context)
{
	unsigned i = 0;
	signal_cleanup_hold();
	while (i < cleanup_count && cleanups[i].context != context)
		i++;
	if (i < cleanup_count) {
		cleanup_count--;
		for (; i < cleanup_count; i++)
			cleanups[i] = cleanups[i + 1];
	}
	signal_cleanup_release();
}
