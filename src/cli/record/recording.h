/* SPDX-License-Identifier: MIT */
/** The logger of a recording, as the command sees it: its start, its messages, its end. Commands that are started
    (record_launch.c), processes that run (record.c) and sessions (session.c) share it. */
#ifndef XHEAP_CLI_RECORDING_H
#define XHEAP_CLI_RECORDING_H

#include <stdint.h>
#include <sys/types.h>

#include "cli/record/record.h"

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

#endif
