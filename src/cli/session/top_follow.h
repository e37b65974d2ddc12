/* SPDX-License-Identifier: MIT */
/** The sums of a session's trace for xheap top, kept up to date by a thread that follows the file (match/follow.h). */
#ifndef XHEAP_CLI_TOP_FOLLOW_H
#define XHEAP_CLI_TOP_FOLLOW_H

#include "match/match.h"
#include "session/control/control.h"

struct top_follow;

/** Begin to follow the trace at `path`, with a priority below that of programs. Return NULL if there is no thread for
    it. */
struct top_follow *top_follow_new(const char *path);

/** Note that the session's file has grown. */
void top_follow_note(struct top_follow *follow, const struct control_state *session);

/** Move the newest sums, if there are newer ones, to *sums, and what was there to *before. Return false after the
    trace was found to be one that cannot be followed; *why says the reason, as long as `follow` exists. */
bool top_follow_take(struct top_follow *follow, struct matching_sums *sums, struct matching_sums *before,
		     const char **why);

#endif
