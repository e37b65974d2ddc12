/* SPDX-License-Identifier: MIT */
/**
 * The session's directory on tmpfs: `session` (what recovery has to know), and per executed image `region.N` with `region.N.info`.
 * Texts are lines "name=value".
 */
#ifndef XHEAP_SESSION_DIRECTORY_H
#define XHEAP_SESSION_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/diag.h"

/** Where sessions of this user live: $XDG_RUNTIME_DIR/xheap-UID or /dev/shm/xheap-UID. */
void session_root(char *path, size_t size);

/** Make a directory for a new session, mode 0700; its path. */
int session_directory_make(char *path, size_t size, struct diag *diag);

/** Write text to directory/name, whole or not at all. */
int session_file_write(const char *directory, const char *name, const char *text, struct diag *diag);

/** Whether the text can be a session's name: up to 64 bytes, without / and control characters, and none of . - and
 *  blank as the first. */
bool session_name_is_good(const char *name);

/** Whether it can be the name of one that is there: such a name or, for root, "UID/NAME", which is another user's. */
bool session_name_is_possible(const char *name);

/** Give the session in the directory a name. -EEXIST: a living one has it. */
int session_name_take(const char *name, const char *directory, struct diag *diag);

/** Nobody has the name any more. */
void session_name_drop(const char *name);

/** Connect to the session with this name: a socket (control.h), or a negative errno with the reason in diag. */
int session_connect(const char *name, struct diag *diag);

/** Call visit with the name of each session of this user, alive or not; for root, of the other users' as well: "UID/NAME". */
void session_each(void (*visit)(void *cookie, const char *name), void *cookie);

/** Whether a session records the process already: true, with its name, or its trace's path when it has none. */
bool session_of_process(pid_t pid, char *name, size_t size);

/** Where a session takes connections: its directory's socket. A descriptor, or a negative errno. */
int session_listen(const char *directory, struct diag *diag);

/** Remove a file of the session's directory. Where it is the link to a region elsewhere, that file and its directory are removed, too. */
void session_file_remove(const char *directory, const char *name);

/** Remove the directory and everything in it. */
void session_directory_remove(const char *path);

#endif
