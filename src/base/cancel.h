/* SPDX-License-Identifier: MIT */
/** Work that may be stopped: another thread, or a signal handler, sets a flag. The work looks at it often, ends soon,
    and leaves a result of which only the memory is to be freed. */
#ifndef XHEAP_BASE_CANCEL_H
#define XHEAP_BASE_CANCEL_H

#include <stdbool.h>
#include <stddef.h>

/** Return whether the work is to stop. NULL: nobody can stop it. */
static inline bool cancel_is_asked(const bool *is_cancelled)
{
	return is_cancelled && __atomic_load_n(is_cancelled, __ATOMIC_RELAXED);
}

#endif
