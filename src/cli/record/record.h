/* SPDX-License-Identifier: MIT */
/** Shared by the two ways of recording and by sessions: a command that is started (record_launch.c), processes that run
    (record_attach.c), the logger (recording.c), the files (record_files.c). */
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
	bool is_end_shown;        /**< the message that recording has ended was printed */
	pid_t command_pid, logger_pid;
	uint64_t run_ns;        /**< how long the command ran, or the processes were recorded; 0: not known */
	int control;            /**< socket of the logger */
	uint64_t index_wait_ns; /**< when the trace was complete and only its index was missing; 0: it is not */
	struct control_summary summary;
	bool has_summary;
	char refusal[1024];      /**< why the command was killed at its exec; empty: it was not */
	bool is_appended;        /**< to a file that has events already */
	struct option_pids pids; /**< --pid */
	bool is_in_session;      /**< control and logger_pid belong to the logger of a session that runs already */
	uint32_t limit_ms;       /**< --duration; 0: not given */
	uint64_t *pids_ran_ns; /**< by attached process: its processor time when the recording began; NULL: not known */
};

/** Options that store in a struct record: of a recording, --pid, and both with those of its session. */
extern const struct option record_quiet_rows[], record_option_rows[], record_pid_rows[];
extern const struct option_group record_option_groups[];

/** Give the options that depend on others their values, and refuse what does not go together. `command` is for
    messages. 0, or an exit status after a message. */
int record_settle(struct record *record, const char *command);

/* ---- record_files.c ---- */

/** Find the command's file as execvp does. 0, or an exit status after a message. */
int record_find_program(struct record *record);

/** Refuse a program that cannot be traced, before anything is made. 0, or an exit status after a message. */
int record_check_program(const struct record *record);

/** Check whether a trace can be written at --output. Only a regular file of this user may be replaced, and it is not
    touched yet. 0, or an exit status after a message. */
int record_check_output(const struct record *record);

/** Whether there may be several files, with a counter in their names. */
bool record_is_numbered(const struct record *record);

/** Set the trace's path: --output, else made of name and pid. 0, or an exit status after a message. */
int record_set_path(struct record *record, const char *name, pid_t pid);

/** The command line as one text, the caller's (free). */
char *record_join_command(char **command);

/** Remove the trace of a recording that did not begin. */
void record_remove_trace(const struct record *record);

/* ---- recording.c ---- */

/** Start the logger; record->control is its socket. CLI_OK, or CLI_FAILED after a message. */
int record_start_logger(struct record *record);

/** Attach to all pids, or to none. CLI_OK, or CLI_FAILED after a message. */
int record_attach_all(struct record *record);

/** Prints what a logger says; `cookie` of a controller_listener. */
struct record_listener {
	const struct record *record;
	unsigned refusals;
};
void record_on_message(void *cookie, enum controller_word word, const char *text);

/** Send the logger a message about the command. */
void record_tell(const struct record *record, uint32_t kind, int64_t value);

/** Take a message from the logger: print notes, store a refusal and the summary. */
void record_take(struct record *record, const struct control_message *message);

/** Take messages until the summary has come, or the logger has ended. */
void record_wait_for_summary(struct record *record);

/** As record_wait_for_summary(), of a session's logger that this command has not started. Return 0, or a negative errno
    with the reason in `diag` if the logger shows no progress. */
int record_wait_for_session(struct record *record, struct diag *diag);

/** Wait for the end of a logger that has nothing left to do; kill it when it does not end. */
void record_end_logger(pid_t pid);

/* ---- the others ---- */

/** Print how much was recorded and lost, what it cost, and what to do next. logger_status: its wait status. */
void record_print_summary(const struct record *record, int logger_status);

/** Note the processor time of the attached processes: their recording begins. */
void record_note_processor_time(struct record *record);

/** Print the answer in three lines, if it costs at most a tenth of the recording's processor time, of a recording below
    a second at most 5 ms or a hundredth of its time: the peak, what grows or is outstanding, and the command to type
    next. The command and the logger have been waited for. `shown`: the trace for people. Return false, and print
    nothing, if it would cost more or there is none. */
bool record_print_answer(const struct record *record, const char *shown);

/** Run the command with a logger of its own. The exit status. */
int record_launch(struct record *record);

/** Run the command in the session that record->control leads to. The exit status. */
int record_launch_in_session(struct record *record);

/** Record pids until they end, the time is over, or a signal asks for the end. The exit status. */
int record_attached(struct record *record);

#endif
