/* SPDX-License-Identifier: MIT */
/** The state that the parts of the store share. Only these parts include it. */
#ifndef XHEAP_SESSION_STORE_STATE_H
#define XHEAP_SESSION_STORE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "session/store/store.h"
#include "trace/statistics.h"

enum { PIECES = 8, PIECE_BYTES_MIN = 256 << 10, PIECE_BYTES_MAX = 64 << 20 };
#define PIECE_NAME "piece."
#define SNAPSHOT_NAME "look.xht"
#define FOLDED_NAME "folded."
#define FOLDING_NAME "folding"

/** The operations and properties of a file mode. */
struct store_mode {
	/** Open the writer with the options in *how, and complete them. *clock is the session's; a file that is
	    continued replaces it. Return 0 or a negative errno. */
	int (*open)(struct store *store, struct writer_options *how, struct writer_clock *clock, struct diag *diag);
	bool is_written_out; /**< the file is made at the end, from pieces */
	bool is_copied;      /**< readers of the growing file get a copy */
	bool is_unlimited;   /**< max_file_bytes limits each file, not their sum */
};

/** A piece of the recording, a file. */
struct piece {
	uint32_t number;
	uint64_t bytes, events;
	/* keep-live mode: normally, all events up to this time are in this piece or older ones */
	int64_t until_ns;
};

/* A writing out under way: everything that its thread uses. */
struct write_out {
	bool is_begun, is_snapshot;
	uint32_t is_done;
	pthread_t thread;
	struct doorbell *doorbell;
	int *fds; /* of the pieces; the store may drop their names before they are written */
	unsigned count;
	struct trace_statistics statistics;
	struct store_result result;
};

/* The keep-live mode: what is aggregated, and the folding under way, for which a thread waits. */
struct keep_live {
	bool has_folded, is_begun, wants_flush;
	uint32_t is_done, is_urgent;
	uint32_t folded_number; /* pieces with lower numbers are aggregated */
	uint64_t folded_bytes;
	int64_t flushed_ns, until_ns; /* time up to which events are written, and are aggregated; ns of the trace */
	uint64_t window_bytes;
	uint32_t count;    /* how many of the oldest pieces are being folded */
	unsigned failures; /* in a row */
	pthread_t thread;
	pid_t pid;
	const char **words;
	unsigned word_count;
	int error;
	struct diag diag;
};

/** The state of a store. */
struct store {
	const struct store_mode *mode;
	const struct session_options *options;
	const char *directory; /* of the pieces */
	char keep_directory[WRITER_PATH_MAX - 64];
	struct writer *writer;
	struct doorbell *doorbell;
	char path[WRITER_PATH_MAX], next_path[WRITER_PATH_MAX], snapshot_path[WRITER_PATH_MAX];
	uint32_t counter, write_count; /* of numbered files; of writings out */
	bool has_turned;
	char final_path[WRITER_PATH_MAX];    /* where the trace will be once its directory is there; "": it is there */
	char mount_point[WRITER_PATH_MAX];   /* where a file system is to be mounted first; "": none */
	uint64_t looked_ns;                  /* when it was last looked whether the directory is there */
	uint64_t past_bytes, dropped_events; /* of earlier files that still exist; of files that were removed */
	uint64_t piece_bytes;
	struct piece *pieces; /* whole pieces, oldest first */
	uint32_t piece_count, piece_capacity, piece_number;
	struct write_out job;
	struct keep_live *keep; /* keep-live mode; else NULL */
	void (*tell)(void *cookie), (*progress)(void *cookie);
	/* argument of `tell` and `progress`, called during the wait for a folding; NULL functions: not called */
	void *tell_cookie;
	uint64_t fold_run_ns; /* CPU time of the folding process at the last check */
	uint64_t reported_ns;
};

#endif
