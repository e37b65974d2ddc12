/* SPDX-License-Identifier: MIT */
/** The watcher's groups: each has marks, a queue of events, and events that were read and not answered. The
    guardian gets a descriptor of each one before its first mark. */
#ifndef XHEAP_IMAGE_WATCHER_GROUPS_H
#define XHEAP_IMAGE_WATCHER_GROUPS_H

struct watch_message;
struct watcher;

/** Set a mark that the keeper asks for. */
void watcher_mark(struct watcher *watcher, const struct watch_message *message, int object);

/** Begin with new marks; let the group of the last ones end. */
void watcher_marks_begin(struct watcher *watcher);
void watcher_marks_swap(struct watcher *watcher);

/** Remove all marks. */
void watcher_marks_drop(struct watcher *watcher);

/** Close groups that nobody uses any more, and wake a reader for events that wait. */
void watcher_check_groups(struct watcher *watcher);

/** Return how many events wait in the group. */
unsigned watcher_group_queued(int group);

/** Wake another reader if the group has events. */
void watcher_group_wake(const struct watcher *watcher, unsigned row);

#endif
