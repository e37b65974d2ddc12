/* SPDX-License-Identifier: MIT */
/** The options of a recording beside those of its session (session/control/option_rows.c), and which go together. */
#ifndef XHEAP_CLI_RECORD_OPTIONS_H
#define XHEAP_CLI_RECORD_OPTIONS_H

#include "cli/record/record.h"

/** Options that store in a struct record: of a recording, --pid, and both with those of its session. */
extern const struct option record_quiet_rows[], record_option_rows[], record_pid_rows[];
extern const struct option_group record_option_groups[];

/** Give the options that depend on others their values, and refuse what does not go together. `command` is for
    messages. 0, or an exit status after a message. */
int record_settle(struct record *record, const char *command);

#endif
