/* SPDX-License-Identifier: MIT */
/** File systems that lose their marks for some time, since readers wait for their files. */
#ifndef XHEAP_IMAGE_WATCHER_UNWATCHED_H
#define XHEAP_IMAGE_WATCHER_UNWATCHED_H

#include <stdbool.h>

struct watcher;

/** Have the file systems unmarked whose events hold too many readers. */
void watcher_check_readers(struct watcher *watcher);

/** Return whether the file system of the object is to have no mark. */
bool watcher_is_unwatched(struct watcher *watcher, int object);

#endif
