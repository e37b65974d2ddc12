/* SPDX-License-Identifier: MIT */
/** The programs of xheap: they lie in one directory, and find each other there. */
#ifndef XHEAP_SESSION_OWN_PROGRAM_H
#define XHEAP_SESSION_OWN_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

/** The command, and what watches image options. */
#define OWN_PROGRAM_COMMAND "xheap"
#define OWN_PROGRAM_WATCHER "xheap-images"

/** Return a descriptor (O_PATH) of the program beside the running one; or a negative errno, also if the file or its
    directory is not trusted (base/trusted_files.h). */
int own_program_open(const char *name, struct diag *diag);

/** Return whether the file is the running program or one of those beside it, as they were at the first call. */
bool own_program_is(dev_t device, ino_t inode);

/** Return whether the process executes one of them. Its file system is not asked. */
bool own_program_runs(pid_t pid);

/** Remember those files now: an upgrade may replace them. */
void own_program_note(void);

#endif
