/* SPDX-License-Identifier: MIT */
/** The starts that the watcher has to answer: which option they belong to, which logger takes them, and the answer. */
#ifndef XHEAP_IMAGE_WATCHER_STARTS_H
#define XHEAP_IMAGE_WATCHER_STARTS_H

#include <stdint.h>
#include <sys/types.h>

#include "image/watcher_state.h"

/** Answer, or pass on, what the kernel asks. */
void watcher_take_event(struct watcher_reader *reader, const struct fanotify_event_metadata *event);

/** Take the messages of a logger. */
void watcher_take_answers(struct watcher *watcher, struct taker *taker);

/** Answer starts whose deadline is over. Return the time until the next deadline in ms, WATCHER_BEAT_MS at most. */
int watcher_check_deadlines(struct watcher *watcher);

/** Send the starts that wait for a logger, if there is one for them by now. */
void watcher_send_waiting(struct watcher *watcher);

/** Return the taker with the number; NULL: it is gone. */
struct taker *watcher_taker(struct watcher *watcher, uint32_t id);

#endif
