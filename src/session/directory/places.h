/* SPDX-License-Identifier: MIT */
/**
 * The directories in which sessions live. Each is used through its descriptor, and only after a proof that the
 * directory is the user's own, is closed to others, and cannot be replaced by another user.
 *
 *     $XHEAP_RUNTIME_DIR/xheap-UID     if set and proved: then the only place
 *     /run/xheap                       root's, if /run is a tmpfs: then the only place for root's sessions
 *     $XDG_RUNTIME_DIR/xheap-UID       if proved
 *     /dev/shm/xheap-UID-RANDOM        otherwise; found by listing
 *
 * Another user chooses the content of their own places, and how many there are in shared memory: a search there has a
 * time at which it ends.
 */
#ifndef XHEAP_SESSION_PLACES_H
#define XHEAP_SESSION_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

enum { PLACE_PATH_BYTES = 256 };

/** An open place. */
struct place {
	int fd;     /**< of the directory */
	uid_t user; /**< its owner */
	char path[PLACE_PATH_BYTES];
};

/** Return whether the open directory belongs to the user and nobody else may list it or write to it. */
bool place_is_own(int fd, uid_t user);

/** Return whether the open directory is the user's own and lies in a directory that may be a place of theirs: whoever
    has other environment variables finds sessions elsewhere. The file system must be local (os/local_files.h). */
bool place_has_directory(int directory, uid_t user);

/** Return whether the file system has room for the buffers of a process. */
bool place_has_room(int fd);

/** Open what the directory has by this name, through no link and in no other mount. Return a descriptor, or -1 with
    errno set. */
int place_open_within(int within, const char *name, int flags);

/** Open the place for new sessions of this user, making it if necessary. Return 0 or a negative errno; the caller
    closes the descriptor. */
int place_open(struct place *place, struct diag *diag);

/** A callback for a place, whose descriptor is closed afterwards. Return true to end the search. */
typedef bool place_visit(void *cookie, const struct place *place);

/** Visit each place where the user's sessions may be. Environment variables count only for the current user; but with a
    proved XHEAP_RUNTIME_DIR, other users have no places. Shared memory is searched until until_ns of the monotonic
    clock. Return true if a visit ended the search. */
bool places_each(uid_t user, uint64_t until_ns, place_visit *visit, void *cookie);

/** Visit the places of all other users, until until_ns of the monotonic clock. Return true if a visit ended the
    search. */
bool places_each_other(uint64_t until_ns, place_visit *visit, void *cookie);

#endif
