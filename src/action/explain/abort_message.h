/* SPDX-License-Identifier: MIT */
/** What glibc's malloc means by the message with which it ends a process. */
#ifndef XHEAP_ACTION_ABORT_MESSAGE_H
#define XHEAP_ACTION_ABORT_MESSAGE_H

#include <stdbool.h>

/** A message, by the words that it begins with. */
struct abort_meaning {
	const char *begin;
	const char *words;     /**< for people: what the allocator has seen */
	bool is_freed_written; /**< a freed block that a thread's cache holds was written to */
};

/** Return the meaning of the message; NULL: it is none of malloc's. */
const struct abort_meaning *abort_meaning_find(const char *message);

#endif
