/* SPDX-License-Identifier: MIT */
/** The watcher: the one process with the descriptor by which the kernel asks before it executes a marked file. It reads
    events, answers them and sets marks. It never traces, executes, logs, opens a file or waits for another process. */
#ifndef XHEAP_IMAGE_WATCHER_H
#define XHEAP_IMAGE_WATCHER_H

#include <stdint.h>

enum { WATCH_LIVES = 64 };

/** Memory of the watcher, the guardian and the keeper. */
struct watch_life {
	uint64_t beats;   /**< the watcher raises it at least every WATCHER_BEAT_MS */
	uint32_t watcher; /**< number of the watcher that runs; the guardian counts them */
	/** of each watcher, by its number modulo WATCH_LIVES: time of its last beat since the epoch, 0: none. The next
	    watcher runs before the keeper knows of the end of the last one. */
	int64_t beat_ns[WATCH_LIVES];
};

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
