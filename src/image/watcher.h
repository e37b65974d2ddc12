/* SPDX-License-Identifier: MIT */
/** The watcher: the one process with the descriptor by which the kernel asks before it executes a marked file. It reads
    events, answers them and sets marks. It never traces, executes, logs, opens a file or waits for another process. */
#ifndef XHEAP_IMAGE_WATCHER_H
#define XHEAP_IMAGE_WATCHER_H

#include <stdint.h>

#include "image/watch_life.h"

/** WATCHER_DEADLINE_MS: usually; at least, at most. */
enum {
	WATCHER_BEAT_MS = 50,
	WATCHER_DEADLINE_MS = 100,
	WATCHER_DEADLINE_MIN_MS = 10,
	WATCHER_DEADLINE_MAX_MS = 10000,
	WATCHER_PENDING_MAX = 64
};

/** Watch until the keeper's socket closes. A start waits at most deadline_ms. Return the exit status. */
int watcher_run(int keeper, struct watch_life *life, uint32_t deadline_ms);

#endif
