/* SPDX-License-Identifier: MIT */
/** The session of a trace that a page shows while it is recorded: its logger is asked once a second, and never waited
    for. */
#ifndef XHEAP_CLI_VIEW_SESSION_H
#define XHEAP_CLI_VIEW_SESSION_H

#include "base/diag.h"

struct server;
struct view_session;

/** Find the session by its name. Return NULL with the reason in `diag` if there is none, or if its trace is not one
    file that only grows; end it with view_session_free(). */
struct view_session *view_session_named(const char *name, struct diag *diag);

/** Find the session of this user that writes the trace now. Return NULL if there is none. */
struct view_session *view_session_writing(const char *path);

/** Return the path of the trace. */
const char *view_session_path(const struct view_session *session);

/** Tell the server what is known, and ask anew if it is time; to be called several times a second. */
void view_session_look(struct view_session *session, struct server *server);

/** Free it; NULL is allowed. */
void view_session_free(struct view_session *session);

#endif
