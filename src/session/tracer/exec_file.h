/* SPDX-License-Identifier: MIT */
/** The file that a process is about to execute. */
#ifndef XHEAP_SESSION_EXEC_FILE_H
#define XHEAP_SESSION_EXEC_FILE_H

#include <sys/types.h>

#include "base/diag.h"

/** Check that the file can be traced when it is executed. path: as the process sees it, relative to its descriptor
    `directory`; name: for people. Files that may hang, or that other users may have made for root's logger, are
    inspected by a child, for EXEC_FILE_MS at most. Return 0, or a negative errno with the reason. */
int exec_file_inspect(pid_t pid, int directory, const char *path, const char *name, struct diag *diag);

enum { EXEC_FILE_MS = 1000 };

#endif
