/* SPDX-License-Identifier: MIT */
/** Which option the file belongs to that a thread is about to execute. */
#ifndef XHEAP_IMAGE_WATCHER_MATCH_H
#define XHEAP_IMAGE_WATCHER_MATCH_H

#include <sys/types.h>

struct registered;
struct watch_table;
struct watcher;
struct watcher_file;

/** Return the option that the event's file belongs to, for this thread, and find the file's path. A path goes before a
    name, a name before a service. NULL: none. */
const struct registered *watcher_match(const struct watcher *watcher, const struct watch_table *table, int event,
				       pid_t tid, struct watcher_file *file);

#endif
