/* SPDX-License-Identifier: MIT */
/** Whose share a process takes: in a namespace of users a user may be many. */
#ifndef XHEAP_IMAGE_USER_SHARE_H
#define XHEAP_IMAGE_USER_SHARE_H

#include <stdint.h>
#include <sys/types.h>

/** Return the user whose share the thread takes: the real user, or whoever has made the namespace of users that it is
    in. IMAGE_SHARE_ROOT: root, or it has ended. */
uint32_t user_share(pid_t tid);

/** Return the user who has made the outermost namespace of users around the one of a descriptor, which is closed. */
uint32_t user_space_maker(int space);

#endif
