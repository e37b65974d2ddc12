/* SPDX-License-Identifier: MIT */
/** A command that is recorded from its first instruction. */
#ifndef XHEAP_CLI_RECORD_LAUNCH_H
#define XHEAP_CLI_RECORD_LAUNCH_H

struct record;

/** Run the command with a logger of its own. The exit status. */
int record_launch(struct record *record);

/** Run the command in the session that record->control leads to. The exit status. */
int record_launch_in_session(struct record *record);

#endif
