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

/** Move a trace that waits for its directory to its path, if the directory is there now. At the end of the session
    (is_last), a file system that was not mounted is waited for no longer. Return true once, after that, and from then
    on false. */
bool store_settle_path(struct store *store, bool is_last);

/** Return whether a trace that waits can be moved to its path. It is looked for that a few times a second. */
bool store_has_place(struct store *store, uint64_t now_ns);

/** Return whether the trace is in memory, since its directory cannot be written to. */
bool store_is_waiting(const struct store *store);

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

/** Return the memory of the process that folds (keep-live mode); 0: none runs. */
uint64_t store_folding_bytes(const struct store *store);

/** Return whether a keep-live recording has twice its window, and none of it may be folded before events up to a
    certain time are written. Then no events are taken until they are. */
bool store_is_full(const struct store *store);

/** Return the number of events that were dropped by the limit. */
uint64_t store_dropped_events(const struct store *store);

/** Set the bytes of aggregated events (keep-live mode) and the time up to which events are aggregated, ns of the trace;
    0, 0: none. */
void store_folded(const struct store *store, uint64_t *bytes, int64_t *until_ns);

/** Return whether a flush is wanted before its time. */
bool store_wants_flush(const struct store *store);

/** Note that events up to until_ns are written (0: unknown, or they are not to be folded). Begin to fold what exceeds
    the window. Return true if `diag` has a text for the user. */
bool store_note_flush(struct store *store, int64_t until_ns, struct diag *diag);

/** Return how often something was written out. */
uint32_t store_write_count(const struct store *store);

/** Return true once after the store has begun another file. */
bool store_has_turned(struct store *store);

/** Begin to write out what is in memory: to the next path or, as a snapshot, into the session's directory. Return 0 or
    a negative errno; -EBUSY: a writing out is under way. */
int store_write_out(struct store *store, bool is_snapshot, const struct trace_statistics *statistics,
		    struct diag *diag);

/** Return true once when a writing out has ended; with is_waiting, wait for that. Return false if none is under way. */
bool store_take_result(struct store *store, bool is_waiting, struct store_result *result);

/** End the trace and write out what is in memory. Return 0 or a negative errno. The writer is closed in both cases. */
int store_close(struct store *store, const struct trace_statistics *statistics, struct diag *diag);

/** Join the pieces that a dead logger has left in the directory into one file, `output`. Return 0 or a negative errno;
    -ENOENT: the directory has none. */
int store_recover(const char *directory, const char *output, struct diag *diag);

/** Remove the pieces that a dead logger has left, and the directory if it is then empty. */
void store_remove(const char *directory);

#endif
