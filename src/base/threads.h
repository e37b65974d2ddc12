/* SPDX-License-Identifier: MIT */
/** Threads of ours in a program that may be anybody's. */
#ifndef XHEAP_BASE_THREADS_H
#define XHEAP_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/** Begin a thread, in which none of the program's signals is handled. False when there can be none. */
bool thread_begin(pthread_t *thread, void *(*run)(void *argument), void *argument);

/** Processors that this process may use, `most` at most and 1 at least. */
unsigned thread_processors(unsigned most);

#endif
