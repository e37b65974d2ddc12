/* SPDX-License-Identifier: MIT */
/** What a logger that was killed has left behind: its session's directory and an unfinished trace. Made whole again. */
#ifndef XHEAP_SESSION_RECOVER_H
#define XHEAP_SESSION_RECOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "trace/writer.h"

/** What the file `session` of a session's directory says. */
struct recover_session {
	char directory[512];
	char trace_path[4096];
	char command[8192];
	char clock_name[32];
	struct writer_clock clock;
	int32_t logger_pid;
	uint64_t logger_start; /**< field 22 of its /proc/PID/stat */
	uint32_t region_count;
	bool has_logger;              /**< it still lives */
	bool had_no_memory;           /**< and ended for that */
	bool is_in_pieces;            /**< what it recorded */
	bool does_follow;             /**< programs that are executed were to be recorded, too */
	char pattern[4096];           /**< of files that follow each other; "": there is only one */
	uint32_t counter;             /**< the number in the name of trace_path */
	char pieces[WRITER_PATH_MAX]; /**< where these are */
};

struct recover_options {
	const char *output; /**< NULL: the trace itself; else it is copied there first */
	bool keep;          /**< do not remove the session's directory */
};

struct recover_result {
	char trace_path[4096];
	bool was_missing;                                  /**< there was no trace, a new one was made */
	uint64_t events, lost, in_flight, damaged_buffers; /**< of what was still in the regions */
	bool has_ended;                                    /**< recording had ended before the logger was killed */
	uint64_t after;                                    /**< calls since recording ended */
	uint64_t total_events, size_bytes;
	uint32_t regions, bad_regions, live_processes;
	char bad_region[256]; /**< why the first bad one could not be read */
};

/** Read what a session's directory says. 0 or a negative errno. */
int recover_read_session(struct recover_session *session, const char *directory, struct diag *diag);

/** This user's sessions whose directories are there, into *sessions (free() it); their number. */
int recover_list(struct recover_session **sessions);

/**
 * Take what the regions still hold, end the trace, remove the directory. Processes that still run are let go: what they
 * have committed is taken, and they stay open in the trace. 0, or a negative errno; then nothing has been removed.
 */
int recover_run(const struct recover_session *session, const struct recover_options *options,
		struct recover_result *result, struct diag *diag);

#endif
