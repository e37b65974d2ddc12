/* SPDX-License-Identifier: MIT */
/**
 * The session's directory on tmpfs: `session` (what recovery has to know), and per executed image `region.N` with `region.N.info`.
 * Texts are lines "name=value".
 */
#ifndef XHEAP_SESSION_DIRECTORY_H
#define XHEAP_SESSION_DIRECTORY_H

#include <stddef.h>

#include "base/diag.h"

/** Where sessions of this user live: $XDG_RUNTIME_DIR/xheap-UID or /dev/shm/xheap-UID. */
void session_root(char *path, size_t size);

/** Make a directory for a new session, mode 0700; its path. */
int session_directory_make(char *path, size_t size, struct diag *diag);

/** Write text to directory/name, whole or not at all. */
int session_file_write(const char *directory, const char *name, const char *text, struct diag *diag);

/** Remove the directory and everything in it. */
void session_directory_remove(const char *path);

#endif
