/* SPDX-License-Identifier: MIT */
/** What the parts of the store share: its state, and what one part does for another. Only these parts include it. */
#ifndef XHEAP_SESSION_STORE_STATE_H
#define XHEAP_SESSION_STORE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "session/store.h"

enum { PIECES = 8, PIECE_BYTES_MIN = 256 << 10, PIECE_BYTES_MAX = 64 << 20 };
#define PIECE_NAME "piece."
#define SNAPSHOT_NAME "look.xht"
#define FOLDED_NAME "folded."
#define FOLDING_NAME "folding"

/** What differs between the modes of a file. */
struct store_mode {
	/** Open the writer as `how` says, and complete that. clock: of the session; replaced by that of a file that is
	    appended to. 0 or a negative errno. */
	int (*open)(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag);
	bool is_written_out; /**< the file is made at the end */
	bool is_copied;      /**< who reads the file while it is written reads a copy */
	bool is_unlimited;   /**< max_file_bytes limits each file, not all together */
};

struct piece {
	uint32_t number;
	uint64_t bytes, events;
	/* of a long run: events up to then are in it or in pieces before it, as a rule */
	int64_t until_ns;
};

/* A writing out under way: everything that its thread uses. */
struct write_out {
	bool is_begun, is_snapshot;
	uint32_t is_done;
	pthread_t thread;
	struct doorbell *doorbell;
	int *fds; /* of the pieces, which may be dropped meanwhile */
	unsigned count;
	struct trace_statistics statistics;
	struct store_result result;
};

/* A long run: what is folded, and the folding under way, which a thread waits for. */
struct keep_live {
	bool has_folded, is_begun, wants_flush;
	uint32_t is_done, is_urgent;
	uint32_t folded_number; /* pieces below it are in what is folded */
	uint64_t folded_bytes;
	int64_t flushed_ns, until_ns; /* events up to then are written; and are folded */
	uint64_t window_bytes;
	uint32_t count;    /* of the oldest pieces, which are being folded */
	unsigned failures; /* one after the other */
	pthread_t thread;
	pid_t pid;
	const char **words;
	unsigned word_count;
	int error;
	struct diag diag;
};

struct store {
	const struct store_mode *mode;
	const struct session_options *options;
	const char *directory; /* of the pieces */
	char keep_directory[WRITER_PATH_MAX - 64];
	struct writer *writer;
	struct doorbell *doorbell;
	char path[WRITER_PATH_MAX], next_path[WRITER_PATH_MAX], snapshot_path[WRITER_PATH_MAX];
	uint32_t counter, write_count; /* of files with a number in their names; of writings out */
	bool has_turned;
	uint64_t past_bytes, dropped_events; /* of files before the present one that are there; of those that are not */
	uint64_t piece_bytes;
	struct piece *pieces; /* whole ones, oldest first */
	uint32_t piece_count, piece_capacity, piece_number;
	struct write_out job;
	struct keep_live *keep; /* of a long run */
	void (*tell)(void *cookie), (*progress)(void *cookie);
	/* of these two, which are called while a folding is waited for; NULL: nobody is */
	void *tell_cookie;
	uint64_t fold_run_ns; /* that the folding process had run when it was looked at last */
	uint64_t reported_ns;
};

/* ---- store.c ---- */

/** The next number of the file's name is taken: its path is the present one. */
void store_take_next(struct store *store);

/** The path of a piece. */
void pieces_path(const struct store *store, uint32_t number, char *path, size_t size);

/** Remove the oldest piece. */
void pieces_drop_oldest(struct store *store);

/** Note a whole piece. */
void pieces_add(struct store *store, uint64_t bytes, uint64_t events);

/* ---- store_keep.c ---- */

int keep_open(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag);

/** The path of what is folded. */
void keep_folded_path(const struct store *store, uint32_t number, char *path, size_t size);

/** Whether there are so many halves of a window. */
bool keep_has_halves(const struct store *store, unsigned halves);

/** Whether folding comes to anything. */
bool keep_is_worth_folding(const struct store *store);

/** End the folding under way: nobody waits for what is not needed any more. */
void keep_cancel(struct store *store);

/** The most that a long run takes of the disk. */
uint64_t keep_disk_limit(const struct store *store, uint64_t buffer_bytes);

/* ---- store_write_out.c ---- */

/** Write out everything, and wait for it. 0 or a negative errno. */
int store_write_out_all(struct store *store, uint64_t bytes, const struct trace_statistics *statistics,
			struct diag *diag);

#endif
