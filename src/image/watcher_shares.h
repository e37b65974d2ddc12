/* SPDX-License-Identifier: MIT */
/** Shares of users in the places of starts, the loggers that begin, and the room for traces. */
#ifndef XHEAP_IMAGE_WATCHER_SHARES_H
#define XHEAP_IMAGE_WATCHER_SHARES_H

#include <stdbool.h>
#include <stdint.h>

struct start;
struct watcher;

/** Return the last start of the share that has the most places, but for root's, of those that wait for an answer or of
    all; NULL: a further start of `share` would make that the greatest. */
struct start *watcher_greatest(struct watcher *watcher, uint32_t share, bool is_pending);

/** Return whether a process of the share may have a logger for itself. */
bool watcher_has_each(const struct watcher *watcher, uint32_t option, uint32_t share);

/** Return whether a spare may become a logger for starts of the share. */
bool watcher_has_spare(const struct watcher *watcher, uint32_t share);

/** Return the share of the session for a start, if none has its own share yet: with many users, that of all others. */
uint32_t watcher_session_share(const struct watcher *watcher, uint32_t option, uint32_t share);

#endif
