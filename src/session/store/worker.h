/* SPDX-License-Identifier: MIT */
/**
 * Processes for the logger's work that takes memory and time: the command, run once more.
 * Such a process has its own memory, and its end does not end the logger. Loggers of image options, which are no
 * command (xheap-images), have none: such an option takes nothing that needs them.
 */
#ifndef XHEAP_SESSION_WORKER_H
#define XHEAP_SESSION_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

/** A worker process. */
struct worker {
	pid_t pid; /**< also its process group */
	/** its standard input and output, non-blocking on the logger's side; -1: it has none */
	int input, output;
	int errors; /**< its standard error, for the reason of a failure */
};

/** Start a worker. words: its arguments, ended by NULL. is_talking: connect `input` and `output`. Return 0 or a
    negative errno. */
int worker_begin(struct worker *worker, const char *const *words, bool is_talking);

/** Wait for the worker's end. Return 0, or a negative errno with the worker's message in `diag`. */
int worker_wait(struct worker *worker, struct diag *diag);

/** Called first in the worker: have it killed when the process that started it ends. */
void worker_is_begun(void);

/** In the worker: lower the priority of this thread, and of the threads that it starts, to the least. This cannot be
    undone. is_idle: they run only while a processor is idle. */
void worker_yield(bool is_idle);

/** Called in a worker that nobody needs: for want of memory, the kernel is to end it before anything else. */
void worker_is_dispensable(void);

#endif
