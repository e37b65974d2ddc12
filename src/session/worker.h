/* SPDX-License-Identifier: MIT */
/**
 * The command once more, begun by the logger for work that takes memory and time: neither its memory nor its end are
 * the logger's.
 */
#ifndef XHEAP_SESSION_WORKER_H
#define XHEAP_SESSION_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

struct worker {
	pid_t pid; /**< its process group, too */
	/** its standard input and output, which do not wait for us nor we for them; -1: it has none */
	int input, output;
	int errors; /**< what it says when it fails */
};

/** Begin it: words as of its command line, ended by NULL. 0 or a negative errno. */
int worker_begin(struct worker *worker, const char *const *words, bool is_talking);

/** Wait for its end: 0, or a negative errno with what it said. */
int worker_wait(struct worker *worker, struct diag *diag);

/** In the worker, first of all: it goes with who began it. */
void worker_is_begun(void);

/** In the worker: this thread, and those that it begins, have what nobody else wants of the processors. There is no way
    back. */
void worker_yield(void);

#endif
