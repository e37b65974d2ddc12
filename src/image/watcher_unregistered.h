/* SPDX-License-Identifier: MIT */
/** Files that belong to no option, so that their execs are let through at once. */
#ifndef XHEAP_IMAGE_WATCHER_UNREGISTERED_H
#define XHEAP_IMAGE_WATCHER_UNREGISTERED_H

#include <stdbool.h>
#include <stdint.h>

struct watch_table;
struct watcher;
struct watcher_file;

/** Describe the file of an event but for its path. Return false if that is impossible. */
bool watcher_file_status(int event, struct watcher_file *file);

/** Return whether no server takes part in what is done to the file. */
bool watcher_is_local(int event);

/** Return whether the file belongs to no option, as far as that was found out before. */
bool watcher_is_unregistered(const struct watcher *watcher, const struct watcher_file *file);

/** Note that the file belongs to no option, if only a change of its name or a message of the keeper can change that.
    messages: how many there had been when that was found out. */
void watcher_note_unregistered(struct watcher *watcher, const struct watch_table *table, int event,
			       const struct watcher_file *file, uint64_t messages);

/** Forget what was noted of all files. */
void watcher_forget_unregistered(struct watcher *watcher);

#endif
