/* SPDX-License-Identifier: MIT */
/**
 * The session's directory, in one of the places of session/places.h: `session` (what recovery has to know), `ended`
 * (session/ended.h) when its recording has ended, and per executed image `region.N` with `region.N.info`. Texts are
 * those of session/fields.h. Files are made through the descriptors that are kept, and never through a link.
 */
#ifndef XHEAP_SESSION_DIRECTORY_H
#define XHEAP_SESSION_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/diag.h"
#include "session/fields.h"

/** An open directory, and what it lies in. */
struct session_directory {
	int place, fd;
	char path[400];
};

/** Make a directory for a new session, mode 0700. */
int session_directory_make(struct session_directory *directory, struct diag *diag);

/** Open the directory of a session that a dead logger has left. -EPERM: it is not this user's, or others may write to
    it. */
int session_directory_open(struct session_directory *directory, const char *path, struct diag *diag);
void session_directory_close(struct session_directory *directory);

/** Write the fields to the file, whole or not at all. */
int session_file_write(const struct session_directory *directory, const char *name, const struct fields *fields,
		       struct diag *diag);

/** Without memory: make an empty file with this name, which tells that something was so; and whether it is there. */
void session_mark(const struct session_directory *directory, const char *name);
bool session_is_marked(const struct session_directory *directory, const char *name);

/** The logger ended since there was no memory. */
#define SESSION_NO_MEMORY "no-memory"

/** The whole file, ended by a NUL, to be freed; NULL with errno set. */
char *session_file_read(const struct session_directory *directory, const char *name);

/** Whether the text can be a session's name: up to 64 bytes, without / and control characters, and none of . - and
 *  blank as the first. */
bool session_name_is_good(const char *name);

/** Whether it can be the name of one that is there: such a name or, for root, "UID/NAME", which is another user's. */
bool session_name_is_possible(const char *name);

/** Give the session in the directory a name. -EEXIST: a living one has it. */
int session_name_take(const char *name, const struct session_directory *directory, struct diag *diag);

/** Nobody has the name any more. */
void session_name_drop(const char *name, const struct session_directory *directory);

/** Connect to the session with this name: a socket (control.h), or a negative errno with the reason in diag. */
int session_connect(const char *name, struct diag *diag);

/** Call visit with the name of each session of this user, alive or not; for root, of the other users' as well:
    "UID/NAME". */
void session_each(void (*visit)(void *cookie, const char *name), void *cookie);

/** Call visit with the path of each session's directory of this user. */
void session_each_directory(void (*visit)(void *cookie, const char *path), void *cookie);

/** Whether a session records the process already: true, with its name, or its trace's path when it has none. */
bool session_of_process(pid_t pid, char *name, size_t size);

/** Where a session takes connections: its directory's socket. A descriptor, or a negative errno. */
int session_listen(const struct session_directory *directory, struct diag *diag);

/** Remove a file of the session's directory. Where it is the link to a region elsewhere, that file and its directory
    are removed, too. */
void session_file_remove(const struct session_directory *directory, const char *name);

/** Remove the directory and everything in it, and close it. */
void session_directory_remove(struct session_directory *directory);

#endif
