/* SPDX-License-Identifier: MIT */
/** The threads that read the kernel's events. */
#ifndef XHEAP_IMAGE_WATCHER_READERS_H
#define XHEAP_IMAGE_WATCHER_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "image/watcher_state.h"

/** Start the first readers. Return false if that is impossible. */
bool watcher_readers_start(struct watcher *watcher);

/** Return the state of the reader, and the row of its group unless it is idle. */
enum reader_state watcher_reader_state(const struct watcher_reader *reader, unsigned *group);

/** Answer the event that the reader holds, unless somebody has. */
void watcher_reader_allow(struct watcher_reader *reader);

/** Take the event from the reader: a start waits with it. Return false if it was answered. */
bool watcher_reader_give(struct watcher_reader *reader);

/** Answer events that readers hold for too long. */
void watcher_answer_late(struct watcher *watcher, uint64_t now_ns);

/** Return since when a reader is in an open; 0: it is in none. */
uint64_t watcher_open_since(const struct watcher *watcher, unsigned reader);

/** Return the table as it is, for a reader; give it back. */
struct watch_table *watcher_table_take(struct watcher *watcher);
void watcher_table_give(struct watcher *watcher, struct watch_table *table);

/** Write FAN_ALLOW for the event. */
void watcher_allow(const struct watcher *watcher, unsigned group, int event);

#endif
