/* SPDX-License-Identifier: MIT */
/** Long runs: a window of pieces, the oldest of which are folded into sums by a process. */
#ifndef XHEAP_SESSION_STORE_KEEP_H
#define XHEAP_SESSION_STORE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct store;
struct writer_clock;
struct writer_options;

/** Open the writer for the keep-live mode; see store_mode.open. */
int keep_open(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag);

/** Write the path of the aggregated events `number`. */
void keep_folded_path(const struct store *store, uint32_t number, char *path, size_t size);

/** Return whether the pieces amount to this many halves of the window. */
bool keep_has_halves(const struct store *store, unsigned halves);

/** Return whether a folding now would aggregate any events. */
bool keep_is_worth_folding(const struct store *store);

/** End the folding under way and drop its result. */
void keep_cancel(struct store *store);

/** Return the limit of the disk space of a keep-live recording, while buffer_bytes wait in buffers. */
uint64_t keep_disk_limit(const struct store *store, uint64_t buffer_bytes);

/** Return the memory of the process that folds (keep-live mode); 0: none runs. */
uint64_t store_folding_bytes(const struct store *store);

/** Set the bytes of aggregated events (keep-live mode) and the time up to which events are aggregated, ns of the trace;
    0, 0: none. */
void store_folded(const struct store *store, uint64_t *bytes, int64_t *until_ns);

/** Return whether a flush is wanted before its time. */
bool store_wants_flush(const struct store *store);

/** Note that events up to until_ns are written (0: unknown, or they are not to be folded). Begin to fold what exceeds
    the window. Return true if `diag` has a text for the user. */
bool store_note_flush(struct store *store, int64_t until_ns, struct diag *diag);

#endif
