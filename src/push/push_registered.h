/* SPDX-License-Identifier: MIT */
/**
 * Sessions that begin by themselves, and are pushed: those of image options and autologgers whose files say where. A
 * command of its own for each of them, xheap push SESSION PLACE, as long as the session lasts.
 */
#ifndef XHEAP_PUSH_REGISTERED_H
#define XHEAP_PUSH_REGISTERED_H

#include <stdbool.h>
#include <stddef.h>

/** Fill `words` with "PLACE OPTIONS", separated by blanks, for the session of this name. Return false: it is not to be
    pushed. */
typedef bool push_find(const char *session, char *words, size_t size);

/** Push sessions as they come, until SIGTERM or SIGINT; then those commands are ended, which takes as long as they need
    for a last profile. Return 0, or a negative errno. */
int push_registered(push_find *find);

#endif
