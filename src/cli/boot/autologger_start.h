/* SPDX-License-Identifier: MIT */
/** xheap autologger run and stop: the sessions of the files with Start = 1. */
#ifndef XHEAP_CLI_AUTOLOGGER_START_H
#define XHEAP_CLI_AUTOLOGGER_START_H

#include <stdbool.h>

struct autologger;
struct diag;

/** Verbs: arguments[0] is the verb. They return the exit status. */
int autologger_start_run(int count, char **arguments);
int autologger_stop_run(int count, char **arguments);

/** Start the session of an autologger and store the result as its Status. `init`: what process 1 is about to execute;
    NULL: it runs. Return 0, or a negative errno with the reason in `why`. */
int autologger_start(const struct autologger *logger, const char *init, struct diag *why);

/** Stop the session with this name and complete its trace. Return 0, -ENOENT if it does not run, or another negative
    errno with the reason in `why`. */
int autologger_stop(const char *name, struct diag *why);

#endif
