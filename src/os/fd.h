/* SPDX-License-Identifier: MIT */
/** File descriptors that may already be closed. */
#ifndef XHEAP_OS_FD_H
#define XHEAP_OS_FD_H

#include <unistd.h>

/** Close the descriptor unless it is negative, and set it to -1. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
