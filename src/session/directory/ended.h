/* SPDX-License-Identifier: MIT */
/**
 * The file `ended` of a session's directory: what a session keeps once its trace can take no more. It says when and why
 * recording ended, which processes have made calls since, and how many. A recovery puts the same into the trace. Each
 * count is written at once, since a logger may be killed at any moment.
 */
#ifndef XHEAP_SESSION_ENDED_H
#define XHEAP_SESSION_ENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "session/directory/directory.h"
#include "trace/writer.h"

/** Note a process (trace id; TRACE_NONE: all without one) and its calls since the writer has ended. *fd is the file's
    descriptor, owned by the caller, -1 before the first call. Without room in the directory nothing is noted. */
void ended_note(int *fd, const struct session_directory *directory, const struct writer *writer, uint32_t process);

/** Return whether the session's recording had ended; set *max_file_bytes to its file's limit, 0 if it had none. */
bool ended_has(const char *directory, uint64_t *max_file_bytes);

/** Give the contents of the file to the writer of a recovered trace. */
void ended_tell(const char *directory, struct writer *writer);

#endif
