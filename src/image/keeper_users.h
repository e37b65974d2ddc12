/* SPDX-License-Identifier: MIT */
/** Sessions of users that take starts of registered images. */
#ifndef XHEAP_IMAGE_KEEPER_USERS_H
#define XHEAP_IMAGE_KEEPER_USERS_H

#include <stdbool.h>

struct control_message;
struct diag;
struct keeper;
struct kept_session;

/** Make the socket where sessions of users announce themselves. Return it, or a negative errno. */
int keeper_announced_open(struct diag *diag);
/** Take the sessions that have come to it. */
void keeper_take_announced(struct keeper *keeper);
/** Take the first message of such a session. Return false if it is none. */
bool keeper_announced_name(struct kept_session *session, const struct control_message *message);

#endif
