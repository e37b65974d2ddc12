/* SPDX-License-Identifier: MIT */
#include "base/threads.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "base/cancel.h"

enum { LOOK_NS = 10000000, NS_PER_S = 1000000000 }; /* how long a wait may go on after it was cancelled */

bool thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !error;
}

static void lock_end(void *context)
{
	thread_unlock(context);
}

struct timespec thread_look_time(void)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += LOOK_NS;
	time.tv_sec += time.tv_nsec / NS_PER_S;
	time.tv_nsec %= NS_PER_S;
	return time;
}

bool thread_lock(struct thread_lock *lock, pthread_mutex_t *mutex, const bool *is_cancelled)
{
	int error = pthread_mutex_trylock(mutex);
	while (error && !cancel_is_asked(is_cancelled)) {
		const struct timespec until = thread_look_time();
		error = is_cancelled ? pthread_mutex_timedlock(mutex, &until) : pthread_mutex_lock(mutex);
	}
	if (error)
		return false;
	lock->mutex = mutex;
	memory_guard(&lock->guard, lock_end, lock);
	return true;
}

void thread_unlock(struct thread_lock *lock)
{
	memory_unguard(&lock->guard);
	pthread_mutex_unlock(lock->mutex);
}

static unsigned processors_most = UINT_MAX;

void thread_processors_limit(unsigned most)
{
	processors_most = most;
}

unsigned thread_processors(unsigned most)
{
	cpu_set_t usable;
	most = most < processors_most ? most : processors_most;
	/* More than fit into the set are no case for a limit. */
	long count = sched_getaffinity(0, sizeof(usable), &usable) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&usable);
	return count < 1 ? 1 : count > (long)most ? most : (unsigned)count;
}
