/* SPDX-License-Identifier: MIT */
/** A watcher, as its guardian knows it, and its end. */
#ifndef XHEAP_IMAGE_GUARDIAN_WATCHERS_H
#define XHEAP_IMAGE_GUARDIAN_WATCHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/watcher.h"

struct guardian_watcher {
	pid_t pid;                     /**< 0: the row is free */
	int pidfd;                     /**< -1: the kernel has none, and an end is noticed a round later */
	int socket;                    /**< it sends its groups by it */
	int groups[WATCHER_GROUP_MAX]; /**< -1: none */
	struct watcher_opens *opens;
	uint64_t kill_ns;   /**< it watches no more, and is killed then at the latest; 0: it watches */
	uint64_t answer_ns; /**< when its events are answered next */
};

/** Start a watcher. Return its socket for the keeper; -1: it could not be started. */
int guarded_start(struct guardian_watcher *guarded, struct watch_life *life, uint32_t deadline_ms);

/** Take the descriptors of its new groups, and close those of groups that it has closed. */
void guarded_take_groups(struct guardian_watcher *guarded);

/** Let the watcher watch no more. It is killed as soon as that denies no start. */
void guarded_retire(struct guardian_watcher *guarded);

/** Go on with the end of a watcher that watches no more: remove its marks and answer all its events. helpers: how many
    processes of this one do so. */
void guarded_end(struct guardian_watcher *guarded, unsigned *helpers);

/** Close the groups of a watcher that has ended. */
void guarded_release(struct guardian_watcher *guarded);

#endif
