/* SPDX-License-Identifier: MIT */
/** The command as a job of a shell: Ctrl-C, Ctrl-Z, fg and signals sent by name act on it as if nobody stood
    between. */
#ifndef XHEAP_CLI_JOB_H
#define XHEAP_CLI_JOB_H

#include <sys/types.h>

/** The terminal's signals are the command's affair from here on; others sent to us are passed on to it. */
void job_take_signals(void);

/** In the forked command: as it was before. */
void job_give_signals_back(void);

/** Signals that are sent to us by name go to pid from now on. */
void job_forward_to(pid_t pid);

/** Wait for the command to end; stop when it stops, go on when it does. Its wait status. */
int job_wait(pid_t pid);

#endif
