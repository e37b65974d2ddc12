/* SPDX-License-Identifier: MIT */
/** Threads that the library begins in a program of somebody else. */
#ifndef XHEAP_BASE_THREADS_H
#define XHEAP_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "base/memory.h"

/** Begin a thread that handles none of the program's signals. Return false if it cannot begin. */
bool thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument);

/** A mutex that a thread holds. Work that is given up for lack of memory (base/memory.h) unlocks it, too. */
struct thread_lock {
	struct memory_guard guard;
	pthread_mutex_t *mutex;
};

/** Lock the mutex. Return false if *is_cancelled is set before (base/cancel.h), and it was not locked. NULL: wait. */
bool thread_lock(struct thread_lock *lock, pthread_mutex_t *mutex, const bool *is_cancelled);

/** Return the time until which a wait may go on before it looks whether it was cancelled. */
struct timespec thread_look_time(void);

/** Unlock the mutex. */
void thread_unlock(struct thread_lock *lock);

/** Have this process use at most so many processors from now on. Called by main() before there are threads. */
void thread_processors_limit(unsigned most);

/** Return how many processors this process may use, at least 1 and at most `most`. */
unsigned thread_processors(unsigned most);

#endif
