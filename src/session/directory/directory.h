/* SPDX-License-Identifier: MIT */
/**
 * The session's directory, in one of the places of session/directory/places.h. Its files: `session` (for recovery);
 * `ended` (session/directory/ended.h) once recording has ended; `region.N` with `region.N.info` for each executed
 * image. Texts have the form of session/directory/fields.h. Files are made relative to open descriptors, and never
 * through a link.
 */
#ifndef XHEAP_SESSION_DIRECTORY_H
#define XHEAP_SESSION_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "session/directory/fields.h"

enum { SESSIONS_OF_USER_MAX = 8 }; /* that root takes notice of */

/** An open session directory and the place that contains it: descriptors, -1 if closed. */
struct session_directory {
	int place, fd;
	char path[400];
};

/** Make a directory for a new session, mode 0700, and open it. Return 0 or a negative errno. */
int session_directory_make(struct session_directory *directory, struct diag *diag);

/** Open the directory that a dead logger has left. Return 0 or a negative errno; -EPERM: it belongs to another user, or
    others may write to it. */
int session_directory_open(struct session_directory *directory, const char *path, struct diag *diag);
/** Close both descriptors; closing twice is harmless. */
void session_directory_close(struct session_directory *directory);

/** Write the fields to the file `name`, whole or not at all. Return 0 or a negative errno. */
int session_file_write(const struct session_directory *directory, const char *name, const struct fields *fields,
		       struct diag *diag);

/** Make an empty file `name` as a mark. Allocates nothing; failures are ignored. */
void session_mark(const struct session_directory *directory, const char *name);
/** Return whether session_mark() has made the mark `name`. */
bool session_is_marked(const struct session_directory *directory, const char *name);

/** The mark of a logger that ended for lack of memory. */
#define SESSION_NO_MEMORY "no-memory"

/** Read the whole file. Return its text, ended by a NUL, which the caller frees; NULL with errno set on failure. */
char *session_file_read(const struct session_directory *directory, const char *name);

/** Return whether the text is valid as a session's name: up to 64 bytes. It has no slash and no control character, and
    does not begin with a dot, hyphen or blank. */
bool session_name_is_good(const char *name);

/** Return whether the text can name an existing session: a valid name or, for root, "UID/NAME" for another user's. */
bool session_name_is_possible(const char *name);

/** Give the session in the directory a name. Return 0 or a negative errno; -EEXIST: a live session has the name. */
int session_name_take(const char *name, const struct session_directory *directory, struct diag *diag);

/** Remove the name from the session. */
void session_name_drop(const char *name, const struct session_directory *directory);

/** Connect to the named session. Return a socket (control.h) that the caller closes, or a negative errno with the
    reason in `diag`. */
int session_connect(const char *name, struct diag *diag);

/** As session_connect(), but wait at most so long for a logger that takes no connections. */
int session_connect_within(const char *name, unsigned limit_ms, struct diag *diag);

/** As session_connect_within(), by the path of the session's directory: -ENOENT if it is not there any more. */
int session_connect_at(const char *path, unsigned limit_ms, struct diag *diag);

/** Call visit with the name of each session of this user, live or dead. */
void session_each(void (*visit)(void *cookie, const char *name), void *cookie);

/** A callback for a session of another user, named "UID/NAME". socket: a connection, which the callback closes, or a
    negative errno. */
typedef void session_visit(void *cookie, const char *name, int socket);

/** For root: visit sessions of other users, up to SESSIONS_OF_USER_MAX of each, until until_ns of the monotonic clock.
    Return false if the time was over before the end. */
bool session_each_other(uint64_t until_ns, session_visit *visit, void *cookie);

/** Call visit with the path of each session's directory of this user. */
void session_each_directory(void (*visit)(void *cookie, const char *path), void *cookie);

enum { SESSION_TITLE_BYTES = 256 };

/** Return whether a session already records the process, with its name in `name`, or its trace's path if it has
    none; and behind that, what to do if the logger is gone. Sessions of this user count, and those of root and of the
    process's owner whose logger takes connections. */
bool session_of_process(pid_t pid, char *name, size_t size);

/** Listen on the directory's socket for controllers. Return a descriptor that the caller closes, or a negative
    errno. */
int session_listen(const struct session_directory *directory, struct diag *diag);

/** Remove a file of the session's directory. If the file links to a region elsewhere, remove that region and its
    directory, too. */
void session_file_remove(const struct session_directory *directory, const char *name);

/** Remove the directory and everything in it, and close it. */
void session_directory_remove(struct session_directory *directory);

#endif
