/* SPDX-License-Identifier: MIT */
/** The privileges of a thread: whether an exec has added to them, by whatever way. */
#ifndef XHEAP_OS_PRIVILEGES_H
#define XHEAP_OS_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Those that an exec may add to: the effective user and group, and the permitted capabilities. */
struct privileges {
	bool is_known; /**< false: the thread was gone, or cannot be read */
	uint32_t user, group;
	uint64_t capabilities; /**< bit n is capability n */
};

/** Return the privileges of a thread. */
struct privileges privileges_of(pid_t tid);

/** Return the reason why `after` is more than `before`; NULL: it is not. An id that a thread could have taken by itself
    is no gain. Unknown privileges count as a gain. */
const char *privileges_gained(const struct privileges *before, const struct privileges *after);

#endif
