/* SPDX-License-Identifier: MIT */
/**
 * Where sessions live: directories of which it is proved, before anything in them is used, that they are the user's own
 * and closed to others, and that nobody else can put another one in their place. Each is used through its descriptor.
 *
 *     $XHEAP_RUNTIME_DIR/xheap-UID     where that is proved: the only place then
 *     /run/xheap                       root's, where /run is a tmpfs with room
 *     $XDG_RUNTIME_DIR/xheap-UID       where that is proved
 *     /dev/shm/xheap-UID-RANDOM        otherwise; found by listing
 */
#ifndef XHEAP_SESSION_PLACES_H
#define XHEAP_SESSION_PLACES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

enum { PLACE_PATH_BYTES = 256 };

struct place {
	int fd;     /**< of the directory */
	uid_t user; /**< whose it is */
	char path[PLACE_PATH_BYTES];
};

/** Whether the open directory belongs to the user and nobody else may look in or write. */
bool place_is_own(int fd, uid_t user);

/** Open the place where new sessions of this user are, and make it where there is none. 0 or a negative errno; the
    descriptor is the caller's. */
int place_open(struct place *place, struct diag *diag);

/** Called with a place, whose descriptor is closed behind it. True: enough of them. */
typedef bool place_visit(void *cookie, const struct place *place);

/** Visit each place where sessions of the user may be; environment variables count where that is this user. True when a
    visit was enough. */
bool places_each(uid_t user, place_visit *visit, void *cookie);

/** Visit those of all users but this one. */
bool places_each_other(place_visit *visit, void *cookie);

#endif
