/* SPDX-License-Identifier: MIT */
/** Which pages of another process are written to, by the kernel's own notes: Linux 6.7 and later. The process has one
    more fault at the first write to each page, which the kernel answers; no thread waits for anybody. */
#ifndef XHEAP_INJECT_WRITE_WATCH_H
#define XHEAP_INJECT_WRITE_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

/** Memory [low, high) that is watched. */
struct watched_range {
	uint64_t low, high;
};

struct write_watch {
	int fd; /**< the userfaultfd of the process */
	struct watched_range *ranges;
	size_t count, capacity;
};

/** Begin, with nothing watched yet. A thread makes the two calls that this takes, and all others stand meanwhile; add
    to *pause_ns how long. Only the calling thread may trace the process, and does so no more afterwards. Return 0, or a
    negative errno with the reason in `diag`. */
int write_watch_begin(struct write_watch *watch, pid_t pid, uint64_t *pause_ns, struct diag *diag);

/** Watch private memory, too, as far as the kernel does that. pages_each() with takes_written begins it for each page
    that it visits. What is mapped there later is not watched. */
void write_watch_add(struct write_watch *watch, uint64_t low, uint64_t high);

/** End. If this process dies, the kernel ends it. */
void write_watch_end(struct write_watch *watch);

#endif
