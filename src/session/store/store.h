/* SPDX-License-Identifier: MIT */
/**
 * The store of a session: where its trace goes, by the file mode. That is one file, files with a counter in their
 * names, or pieces, of which the newest are kept within a limit. Pieces in memory are files of the session's directory,
 * so that those of a killed logger survive.
 *
 * A thread of its own writes out what is in memory. It reads only whole pieces, which do not change; recording
 * continues.
 */
#ifndef XHEAP_SESSION_STORE_H
#define XHEAP_SESSION_STORE_H

#include "session/control/options.h"
#include "session/control/watch.h"
#include "trace/writer.h"

/** The word by which the command is asked to fold pieces (src/cli/record/fold.c). */
#define STORE_FOLD_WORD "--fold"

/** A trace that waits for its directory, in the session's directory. */
#define STORE_WAITING_NAME "waiting.xht"

struct store;
struct trace_statistics;

/** The result of writing out. */
struct store_result {
	char path[WRITER_PATH_MAX];
	int error;
	struct diag diag;
};

/** Open the store and set *writer. doorbell: rung after each writing out. options and directory stay the caller's.
    *clock is the session's; if a file is continued, it becomes the file's. Return 0 or a negative errno. */
int store_open(struct store **out, struct writer **writer, const struct session_options *options, const char *directory,
	       struct doorbell *doorbell, struct writer_clock *clock, struct diag *diag);
/** Free the store. */
void store_free(struct store *store);

/** Set callbacks for calls that wait for a folding: tell(cookie) is called now and then, progress(cookie) as long as
    the folding advances, however slowly. */
void store_while_waiting(struct store *store, void (*tell)(void *cookie), void (*progress)(void *cookie), void *cookie);

/** Return the path of the file that is being written, or was last written out; "" if none was. */
const char *store_path(const struct store *store);

/** Return the path at which flushed events of a file can be read during the recording. A circular file that is not too
    large is copied into the session's directory first. */
const char *store_snapshot(const struct store *store);

/** Return the number in the file's name; 0 if nothing was written. */
uint32_t store_counter(const struct store *store);

/** Return the path to which a recovery writes what is in memory. */
const char *store_next_path(const struct store *store);

/** Return the bytes of all files, or of what is kept in memory. */
uint64_t store_size_bytes(const struct store *store);

/** Return the limit of all files on their disk, or in memory, while buffer_bytes wait in buffers; 0: unlimited. */
uint64_t store_disk_limit_bytes(const struct store *store, uint64_t buffer_bytes);

/** Return the bytes that they take. Keep-live mode: everything beside its file, temporary files included. */
uint64_t store_disk_bytes(const struct store *store);

/** Return whether a keep-live recording has twice its window, and none of it may be folded before events up to a
    certain time are written. Then no events are taken until they are. */
bool store_is_full(const struct store *store);

/** Return the number of events that were dropped by the limit. */
uint64_t store_dropped_events(const struct store *store);

/** Return how often something was written out. */
uint32_t store_write_count(const struct store *store);

/** Return true once after the store has begun another file. */
bool store_has_turned(struct store *store);

/** End the trace and write out what is in memory. Return 0 or a negative errno. The writer is closed in both cases. */
int store_close(struct store *store, const struct trace_statistics *statistics, struct diag *diag);

#endif
