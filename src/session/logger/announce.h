/* SPDX-License-Identifier: MIT */
/** How a user's session becomes known to root's keeper of image options: it connects to the keeper's socket, and the
    connection is the keeper's to give starts to it. Root looks into no directory of the user's. */
#ifndef XHEAP_SESSION_ANNOUNCE_H
#define XHEAP_SESSION_ANNOUNCE_H

/** The name of the keeper's socket in IMAGE_DIRECTORY_RUN. */
#define ANNOUNCE_SOCKET "sessions"

/** Announce the session of this name. Return the connection, which the caller closes, or a negative errno: no keeper of
    root's listens, or it has enough sessions. Never waits. */
int announce_session(const char *name);

#endif
