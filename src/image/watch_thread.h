/* SPDX-License-Identifier: MIT */
/** Threads of the watcher and the guardian, beside which busy programs must not delay starts. */
#ifndef XHEAP_IMAGE_WATCH_THREAD_H
#define XHEAP_IMAGE_WATCH_THREAD_H

#include <stdbool.h>

/** Priorities of real time, beside which busy programs wait. */
enum { WATCH_PRIORITY_READER = 1, WATCH_PRIORITY_LIFE, WATCH_PRIORITY_GUARDIAN };

/** Raise the priority of the calling thread, as far as allowed. Its children begin with the usual one. */
void watch_priority_raise(int priority);

/** Keep the pages of this process in memory, those that it gets later, too. If its limit has no room for that, none is
    kept: allocations would fail, and pages that have to be read again are only late. */
void watch_memory_lock(void);

/** Start a detached thread with a raised priority. Return false if that is impossible. */
bool watch_thread_start(void *(*run)(void *argument), void *argument);

/** Close a descriptor in a thread. For a group, which so allows all that waits in it, the kernel waits for the end of
    its marks; for a file, it may wait for a server. */
void watch_thread_close(int fd);

#endif
