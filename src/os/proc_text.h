/* SPDX-License-Identifier: MIT */
/** Texts of /proc that the kernel reads from a process's memory. A user may have put memory there that waits for a file
    system of that user's, so root asks a child that it can lose (os/losable.h). */
#ifndef XHEAP_OS_PROC_TEXT_H
#define XHEAP_OS_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROC_TEXT_MS = 250 };

/** Return whether this process is root's and the other one is not. */
bool proc_text_may_hang(pid_t pid);

/** Read the file "cmdline" or "environ" of the process through a child, each part for PROC_TEXT_MS at most. Return the
    text with a NUL behind it, which the caller frees, and store its bytes; NULL: unknown. */
char *proc_text_ask(pid_t pid, const char *name, size_t *size);

#endif
