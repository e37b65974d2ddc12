/* SPDX-License-Identifier: MIT */
/** The signals of a logger: what reaches it, and the one that ends its session. */
#ifndef XHEAP_SESSION_LOGGER_SIGNALS_H
#define XHEAP_SESSION_LOGGER_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/** Isolate the logger, before it has threads: nothing from the terminal or the command may reach or block it. It keeps
    no descriptor but `control`. SIGTERM stays blocked in all threads, so it interrupts no call of theirs. */
void logger_isolate(int control);

/** Take a SIGTERM that has come. Return whether one has. *sender: the process that sent it; 0: it is not known. */
bool logger_take_end_signal(pid_t *sender);

#endif
