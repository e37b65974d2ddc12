/* SPDX-License-Identifier: MIT */
/** Processes that the library starts. */
#ifndef XHEAP_API_LAUNCH_H
#define XHEAP_API_LAUNCH_H

#include <sys/types.h>

#include "base/diag.h"

/** Run the command xheap, `command` or (NULL) XHEAP of the environment or xheap of PATH, with these words, which end
 *  with NULL, and wait for its end. 0, -ENOENT when there is none, another negative errno; what it has said is in
 *  diag. */
int command_run(const char *command, const char *const *words, struct diag *diag);

/** Make a process of `file`, which is looked for as execvp does, that stands before its first instruction; tracer, if
 *  not 0, may trace it. environment NULL: this program's. */
int suspended_create(const char *file, char *const arguments[], char *const environment[], pid_t tracer, pid_t *pid,
		     struct diag *diag);

/** Let it run, or be no more. */
int suspended_resume(pid_t pid, struct diag *diag);
void suspended_end(pid_t pid);

#endif
