/* SPDX-License-Identifier: MIT */
/** Code of the recorder that stays in detached processes. */
#ifndef XHEAP_SESSION_INACTIVE_H
#define XHEAP_SESSION_INACTIVE_H

#include "session/logger/logger_state.h"

/** Write a text about the code that stays in a detached process. */
void inactive_describe(char *text, size_t size, const struct inject_rest *rest);

/** Remember that the recorder's code stays mapped in a process of the target. */
void inactive_add(struct logger *logger, const struct target *target, pid_t pid, const char *command,
		  const struct inject_rest *rest);

/** Return whether code is known to stay in the process, from the region with this inode. */
bool inactive_has(const struct logger *logger, pid_t pid, uint64_t inode);

/** Try, from time to time, to remove inactive code. now: monotonic_now_ns(). */
void inactive_check(struct logger *logger, uint64_t now);

/** Try it for the last time; the trace names what stays. */
void inactive_end(struct logger *logger);

/** Send a controller a CONTROL_INACTIVE for each such process. */
void inactive_tell(const struct logger *logger, int socket);

#endif
