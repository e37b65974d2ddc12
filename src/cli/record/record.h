/* SPDX-License-Identifier: MIT */
/** A recording, shared by its two ways and by sessions: a command that is started (record_launch.h), processes that run
    (record.c), the logger (recording.h), the files (record_files.h). */
#ifndef XHEAP_CLI_RECORD_H
#define XHEAP_CLI_RECORD_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "cli/option_parser.h"
#include "session/control/controller.h"
#include "session/control/options.h"

struct record {
	struct session_options session;
	const char *output; /**< --output; NULL: not given */
	char **command;     /**< of a command that is started, ends with NULL */
	char trace_path[4096], program[4096];
	struct stat trace_before; /**< of the file at trace_path when it was chosen; st_ino 0: there was none */
	bool is_quiet, is_silent; /**< print only errors and warnings; print only errors */
	bool names_code;          /**< --jit-names */
	bool is_end_shown;        /**< the message that recording has ended was printed */
	pid_t command_pid, logger_pid;
	bool has_crashed;       /**< a signal that its own fault raised ended the command */
	bool has_failed;        /**< it exited with another status than 0 */
	uint64_t run_ns;        /**< how long the command ran, or the processes were recorded; 0: not known */
	int control;            /**< socket of the logger */
	uint64_t index_wait_ns; /**< when the trace was complete and only its index was missing; 0: it is not */
	struct control_summary summary;
	bool has_summary;
	char refusal[1024];      /**< why the command was killed at its exec; empty: it was not */
	bool is_appended;        /**< to a file that has events already */
	struct option_pids pids; /**< --pid */
	bool is_in_session;      /**< control and logger_pid belong to the logger of a session that runs already */
	bool is_of_another;      /**< the session is of another user, whose reports have indexes of their own */
	uint32_t limit_ms;       /**< --duration; 0: not given */
	uint64_t *pids_ran_ns; /**< by attached process: its processor time when the recording began; NULL: not known */
};

#endif
