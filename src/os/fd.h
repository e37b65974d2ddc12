/* SPDX-License-Identifier: MIT */
/** File descriptors that may be closed already. */
#ifndef XHEAP_OS_FD_H
#define XHEAP_OS_FD_H

#include <unistd.h>

/** Close it, once: it is -1 then. */
static inline void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
