/* SPDX-License-Identifier: MIT */
/** What the two ways of recording share: a command that is started (record.c), processes that run (record_attach.c). */
#ifndef XHEAP_CLI_RECORD_H
#define XHEAP_CLI_RECORD_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "session/controller.h"
#include "session/options.h"

enum { RECORD_PIDS_MAX = CONTROLLER_PIDS_MAX };

struct record {
	struct session_options session;
	const char *output;
	char **command;
	char trace_path[4096], program[4096];
	struct stat trace_before; /**< what was there before; st_ino 0: nothing */
	bool is_quiet, is_silent; /* nothing of our own but errors and warnings; nothing but errors */
	bool is_end_said;         /* that the trace can take no more */
	bool keeps_live;          /* --keep live was said */
	pid_t command_pid, logger_pid;
	int control;
	uint64_t index_wait_ns; /**< since when only the index is waited for; 0: not yet */
	struct control_summary summary;
	bool has_summary;
	char refusal[1024];          /**< why the command was killed at its exec; empty: it was not */
	bool is_appended;            /**< to what the file has already */
	pid_t pids[RECORD_PIDS_MAX]; /**< that run already */
	unsigned pid_count;
	bool is_in_session; /**< that was there before: control and logger_pid are its logger's */
	bool has_pids;      /**< they were told, if only as 0 */
	uint32_t limit_ms;  /**< record them for so long; 0: until told */
};

/** Take the options of record, and of a session: 0, or an exit status after a message. Words behind them are left in
    record->command. */
int record_parse(struct record *record, const char *command, int count, char **arguments);

/** Whether a trace can be written where it shall go. 0, or an exit status after a message. */
int record_check_output(const struct record *record);

/** Start the logger; record->control is its socket. CLI_OK, or CLI_FAILED after a message. */
int record_start_logger(struct record *record);

/** Prints what a logger says; `cookie` of an ear. */
struct record_listener {
	const struct record *record;
	unsigned refusals;
};
void record_on_message(void *cookie, enum controller_word word, const char *text);

/** Attach to all pids, or to none. CLI_OK, or CLI_FAILED after a message. */
int record_attach_all(struct record *record);

/** Run the command in the session that record->control leads to. The exit status. */
int record_launch(struct record *record);

/** Record pids until they end, the time is over, or a signal says so. The exit status. */
int record_attached(struct record *record);

/** Whether there may be several files, told apart by a counter. */
bool record_is_numbered(const struct record *record);

/** Settle the trace's path: what was given, else made of name and pid. 0, or an exit status after a message. */
int record_set_path(struct record *record, const char *name, pid_t pid);

/** Take a message of the logger's. */
void record_take(struct record *record, const struct control_message *message);

/** Take all up to its last, or its end. */
void record_wait_for_summary(struct record *record);
void record_print_summary(const struct record *record, int logger_status);

/** Remove what was to be a trace, of nothing. */
void record_remove_trace(const struct record *record);

/** Wait for the logger's end, which comes now; one that hangs is not waited for. */
void record_end_logger(pid_t pid);

#endif
