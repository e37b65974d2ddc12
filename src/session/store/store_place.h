/* SPDX-License-Identifier: MIT */
/** The place of a trace that is one file: one of several generations, and in memory until its directory is there. */
#ifndef XHEAP_SESSION_STORE_PLACE_H
#define XHEAP_SESSION_STORE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct store;
struct writer_clock;
struct writer_options;

/** Open the writer for one file; see store_mode.open. */
int one_file_open(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag);

/** Move a trace that waits for its directory to its path, if the directory is there now. At the end of the session
    (is_last), a file system that was not mounted is waited for no longer. Return true once, after that, and from then
    on false. */
bool store_settle_path(struct store *store, bool is_last);

/** Return whether a trace that waits can be moved to its path. It is looked for that a few times a second. */
bool store_has_place(struct store *store, uint64_t now_ns);

/** Return whether the trace is in memory, since its directory cannot be written to. */
bool store_is_waiting(const struct store *store);

#endif
