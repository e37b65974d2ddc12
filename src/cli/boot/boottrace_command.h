/* SPDX-License-Identifier: MIT */
/** A command as the scenario of xheap boottrace, and signals that end its run. */
#ifndef XHEAP_CLI_BOOTTRACE_COMMAND_H
#define XHEAP_CLI_BOOTTRACE_COMMAND_H

#include <stdbool.h>

struct boottrace;
struct boottrace_run;

/** Run a shell's command and wait. Return its exit status, 128 and the signal's number, or -1 after a message. */
int boottrace_shell(const char *command);

/** Let a signal end the run only after everything is as before; and give back what signals did before. */
void boottrace_signals_take(void);
void boottrace_signals_give_back(void);

/** Return whether a signal asks for the end of the run. */
bool boottrace_is_interrupted(void);

/** Run the command once and record it. Return CLI_OK, or CLI_FAILED after a message; an interrupted run may leave the
    message to the caller. */
int boottrace_run_command(const struct boottrace *scenario, struct boottrace_run *run);

#endif
