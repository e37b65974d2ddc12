/* SPDX-License-Identifier: MIT */
/** Recovery of a session whose logger was killed: it left its directory and an unfinished trace. */
#ifndef XHEAP_SESSION_RECOVER_H
#define XHEAP_SESSION_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "trace/writer.h"

/** The contents of the file `session` of a session's directory. */
struct recover_session {
	char directory[512];
	char trace_path[4096];
	char command[8192];
	char clock_name[32];
	struct writer_clock clock;
	int32_t logger_pid;
	uint64_t logger_start; /**< field 22 of its /proc/PID/stat */
	uint32_t region_count;
	bool has_logger;              /**< the logger is alive */
	bool had_no_memory;           /**< the logger ended for lack of memory */
	bool is_in_pieces;            /**< it recorded into pieces */
	bool does_follow;             /**< executed programs were to be recorded, too */
	char pattern[4096];           /**< of the names of numbered files; "": the session has one file */
	uint32_t counter;             /**< the number in trace_path */
	uint8_t id[16];               /**< of the trace */
	bool has_id;                  /**< sessions of older versions have none */
	char pieces[WRITER_PATH_MAX]; /**< the directory of the pieces */
};

/** Options of a recovery. */
struct recover_options {
	const char *output; /**< path of a copy to complete; NULL: complete the trace itself */
	bool keep;          /**< leave the session's directory in place */
};

/** The result of a recovery. */
struct recover_result {
	char trace_path[4096];
	bool was_missing;                                  /**< the trace was missing, and a new one was made */
	uint64_t events, lost, in_flight, damaged_buffers; /**< of what the regions still held */
	bool has_ended;                                    /**< recording had ended before the logger was killed */
	uint64_t after;                                    /**< calls after recording had ended */
	uint64_t total_events, size_bytes;
	uint32_t regions, bad_regions, live_processes;
	char bad_region[256]; /**< why the first bad region could not be read */
};

/** Read the file `session` of the directory. Return 0 or a negative errno. */
int recover_read_session(struct recover_session *session, const char *directory, struct diag *diag);

/** List this user's sessions that have a directory. *sessions is the caller's to free(). Return their number. */
int recover_list(struct recover_session **sessions);

/** Return whether trace_path holds the trace of another session, which began later: both had one name for their traces,
    and this session's is gone. */
bool recover_is_replaced(const struct recover_session *session);

/** Drain what the regions still hold, complete the trace, remove the directory. Processes that still run are detached:
    their committed events are taken, and they stay open in the trace. Return 0, or a negative errno; then nothing was
    removed. The trace of a later session is never changed: -EEXIST, unless there is an output. */
int recover_run(const struct recover_session *session, const struct recover_options *options,
		struct recover_result *result, struct diag *diag);

#endif
