/* SPDX-License-Identifier: MIT */
#include "base/threads.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

bool thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !error;
}

unsigned thread_processors(unsigned most)
{
	cpu_set_t usable;
	/* More than fit into the set are no case for a limit. */
	long count = sched_getaffinity(0, sizeof(usable), &usable) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&usable);
	return count < 1 ? 1 : count > (long)most ? most : (unsigned)count;
}
