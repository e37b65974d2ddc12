/* SPDX-License-Identifier: MIT */
/**
 * What a session whose trace can take no more keeps of that in its directory, in the file `ended`: when and why, each
 * process that has called since, and how often. Whoever recovers the session says the same in the trace. A count is
 * there as soon as it is made: a logger may be killed at any moment.
 */
#ifndef XHEAP_SESSION_ENDED_H
#define XHEAP_SESSION_ENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "session/directory.h"
#include "trace/writer.h"

/** Note a process (trace process id, TRACE_NONE: all that have none) and its calls since, of a writer that has ended.
 *  *fd: of the file, the caller's, -1 before the first time. Where the directory has no room for it, nothing is
 *  noted. */
void ended_note(int *fd, const struct session_directory *directory, const struct writer *writer, uint32_t process);

/** Whether the session's recording had ended; *max_file_bytes: the greatest size of its file, 0 without one. */
bool ended_has(const char *directory, uint64_t *max_file_bytes);

/** Tell the writer of a recovered trace what the file has. */
void ended_tell(const char *directory, struct writer *writer);

#endif
