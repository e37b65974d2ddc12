/* SPDX-License-Identifier: MIT */
/** Runtimes that name the code which they compile only if their command line asks for it (--jit-names). */
#ifndef XHEAP_CLI_RECORD_RUNTIMES_H
#define XHEAP_CLI_RECORD_RUNTIMES_H

struct record;

/** With --jit-names, put the options that a runtime needs into the command, behind its name, and say so. A command that
    is no known runtime is refused. 0, or an exit status after a message. */
int record_name_code(struct record *record);

#endif
