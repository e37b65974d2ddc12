/* SPDX-License-Identifier: MIT */
/** The watcher: the process with the descriptors by which the kernel asks before it executes a marked file. Its
    readers, threads, read events and answer them; its main thread sets marks and keeps deadlines. It never traces,
    executes, logs, opens a file or waits for another process. The kernel opens the file of an event for the thread that
    reads it, and so may hold that thread for as long as the file's owner likes. Nobody waits for a reader. */
#ifndef XHEAP_IMAGE_WATCHER_H
#define XHEAP_IMAGE_WATCHER_H

#include <stdint.h>

#include "image/watch_life.h"

/** WATCHER_DEADLINE_MS: usually; at least, at most. WATCHER_BLOCKED_MAX: more readers than these may not wait for
    files: then file systems are unmarked. WATCHER_READER_MAX: until that is done. */
enum {
	WATCHER_BEAT_MS = 50,
	WATCHER_DEADLINE_MS = 100,
	WATCHER_DEADLINE_MIN_MS = 10,
	WATCHER_DEADLINE_MAX_MS = 10000,
	WATCHER_PENDING_MAX = 64,
	WATCHER_BLOCKED_MAX = 16,
	WATCHER_READER_MAX = 128,
	WATCHER_GROUP_MAX = 64
};

/** Memory that a watcher shares with its guardian: what must not be interrupted. The kernel denies a start if the open
    of its file is. */
struct watcher_opens {
	uint32_t is_over;                      /**< no more events are read: the watcher ends after the last open */
	uint64_t since_ns[WATCHER_READER_MAX]; /**< in which each is, by the monotonic clock; 0: in none */
};

/** Watch until the keeper's socket closes. guardian: a socket to the guardian, which gets each group of the kernel's. A
    start waits at most deadline_ms. Return the exit status. */
int watcher_run(int keeper, int guardian, struct watch_life *life, struct watcher_opens *opens, uint32_t deadline_ms);

#endif
