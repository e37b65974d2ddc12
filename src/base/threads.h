/* SPDX-License-Identifier: MIT */
/** Threads that the library begins in a program of somebody else. */
#ifndef XHEAP_BASE_THREADS_H
#define XHEAP_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/** Begin a thread that handles none of the program's signals. Return false if it cannot begin. */
bool thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument);

/** Return how many processors this process may use, at least 1 and at most `most`. */
unsigned thread_processors(unsigned most);

#endif
