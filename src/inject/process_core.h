/* SPDX-License-Identifier: MIT */
/** A core file of a process that goes on. */
#ifndef XHEAP_INJECT_PROCESS_CORE_H
#define XHEAP_INJECT_PROCESS_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

struct inject_span;

/** A core that is to be written. */
struct process_core {
	pid_t pid;
	const char *path;                /**< of a file that does not exist yet */
	const struct inject_span *spans; /**< memory that is left out, in the order of addresses */
	uint32_t span_count;
	bool may_stop; /**< the threads may be paused for longer than some 20 ms */
	/** a thread that ends the process as soon as it goes on: the others stay paused until then; 0: none does */
	pid_t exiting;
	/** called before any thread goes on, once the core is whole, or cannot be; or NULL */
	void (*before_end)(void *cookie);
	void *cookie;
};

/** When the threads were paused. */
struct process_core_pause {
	uint64_t ticks; /**< of events, when all of them stood */
	uint64_t ns;    /**< how long, in all */
};

/** Pause all threads, and write their registers and the private memory that can be written to, as it is then. Where the
    kernel tells what is written, most of a large process is copied before. The calling thread traces the process, and
    no other tracer may. If this process dies, the kernel lets the threads go on. Fill *pause, which is zeroed. Return
    0, or a negative errno with the reason in `diag`; then there is no file. */
int process_core_write(const struct process_core *core, struct process_core_pause *pause, struct diag *diag);

#endif
