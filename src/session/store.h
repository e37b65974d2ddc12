/* SPDX-License-Identifier: MIT */
/**
 * Where the trace of a session goes, by its file mode: one file, files with a counter in their names, or pieces in
 * memory (files of the session's directory, so that a killed logger's are still there), of which the newest are kept
 * within a limit.
 *
 * What is in memory is written out by a thread of its own, from pieces that are whole and stay what they are; recording
 * goes on.
 */
#ifndef XHEAP_SESSION_STORE_H
#define XHEAP_SESSION_STORE_H

#include "session/options.h"
#include "session/watch.h"
#include "trace/writer.h"

/** The word by which the command is told to fold pieces (src/cli/fold.c). */
#define STORE_FOLD_WORD "--fold"

struct store;

/** What became of a writing out. */
struct store_result {
	char path[WRITER_PATH_MAX];
	int error;
	struct diag diag;
};

/** Begin: *writer is where the trace goes. doorbell: rung when something is written out. options and directory stay the
 *  caller's. The clock is that of the session; where a file is appended to, it becomes the file's. 0, or a negative
 *  errno with the reason in diag. */
int store_open(struct store **out, struct writer **writer, const struct session_options *options, const char *directory,
	       struct doorbell *doorbell, struct writer_clock *clock, struct diag *diag);
void store_free(struct store *store);

/** While calls take long, as they may where something has to be folded, have tell(cookie) called now and then, and
 *  progress(cookie) as long as folding goes on, however slowly. */
void store_while_waiting(struct store *store, void (*tell)(void *cookie), void (*progress)(void *cookie), void *cookie);

/** The file that is written, or was written out last; "" when nothing was. */
const char *store_path(const struct store *store);

/** Of files: where what is flushed can be read while writing goes on: of a circular one that is not too large, a copy
    in the session's directory. */
const char *store_snapshot(const struct store *store);

/** The number in the file's name; 0 when nothing was written. */
uint32_t store_counter(const struct store *store);

/** Where a recovery puts what is in memory. */
const char *store_next_path(const struct store *store);

/** Bytes of all files, or of what is kept in memory. */
uint64_t store_size_bytes(const struct store *store);

/** What all files may take on their disk, or in memory, while this much may wait in buffers; 0: there is no limit. */
uint64_t store_disk_limit_bytes(const struct store *store, uint64_t buffer_bytes);

/** What they take: of a long run all that lies beside its file, also what is made for a moment. */
uint64_t store_disk_bytes(const struct store *store);

/** Of a long run: what the process that folds has in memory; 0: there is none. */
uint64_t store_folding_bytes(const struct store *store);

/** Whether a long run has twice its window, none of which may be folded before events of a certain time are written:
    nothing more is to come until then. */
bool store_is_full(const struct store *store);

/** Events that are not kept any more. */
uint64_t store_dropped_events(const struct store *store);

/** Of a long run: bytes of what is folded, and up to when; 0 without. */
void store_folded(const struct store *store, uint64_t *bytes, int64_t *until_ns);

/** Whether a flush is wanted before its time. */
bool store_wants_flush(const struct store *store);

/** Events up to then are written (0: it is not known which, or they are to stay). What a long run has too much of
    begins to be folded. True when the user is to be told what diag has. */
bool store_note_flush(struct store *store, int64_t until_ns, struct diag *diag);

/** Times that something was written out. */
uint32_t store_write_count(const struct store *store);

/** True once after the file is another one. */
bool store_has_turned(struct store *store);

/** Begin to write out what is in memory: to its next path or, for a look, into the session's directory. 0, or a
 *  negative errno. -EBUSY: that is being done already. */
int store_write_out(struct store *store, bool is_snapshot, const struct trace_statistics *statistics,
		    struct diag *diag);

/** True once when a writing out has come to its end; with is_waiting, wait for it. False when there is none. */
bool store_take_result(struct store *store, bool is_waiting, struct store_result *result);

/** End the trace; what is in memory is written out. 0, or a negative errno. Closes the writer either way. */
int store_close(struct store *store, const struct trace_statistics *statistics, struct diag *diag);

/** Pieces that a dead logger has left in the directory, made one file. 0, or a negative errno; -ENOENT: there are
    none. */
int store_recover(const char *directory, const char *output, struct diag *diag);

/** Remove what such a logger has left, and the directory if nothing else is in it. */
void store_remove(const char *directory);

#endif
