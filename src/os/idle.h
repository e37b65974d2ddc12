/* SPDX-License-Identifier: MIT */
/** Whether the machine's processors have time that nobody else wants. */
#ifndef XHEAP_OS_IDLE_H
#define XHEAP_OS_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/** The times at the last look. Zero it; the first look is from the machine's start on. */
struct idle {
	uint64_t looked_ns, idle_ns, own_ns;
	bool is_idle;
};

/** Return whether, of the processors that this thread may use, at least half of one was idle or ran this process since
    the last look. Less than 100 ms behind it, return the same again. */
bool idle_look(struct idle *idle);

#endif
