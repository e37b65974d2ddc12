/* SPDX-License-Identifier: MIT */
/* Facts: Documentation/admin-guide/syscall-user-dispatch.rst and include/uapi/linux/ptrace.h of the kernel. */
#include "inject/dispatch.h"

#include <errno.h>
#include <stdint.h>
#include <sys/ptrace.h>

enum { GET_DISPATCH = 0x4211, MODE_OFF = 0, SELECTOR_ALLOWS = 0 };

/* As the kernel lays it out. */
struct dispatch_config {
	uint64_t mode, selector, offset, bytes;
};

/* Read the selector by the aligned word around it. */
static bool selector_allows(pid_t tid, uint64_t selector)
{
	enum { WORD_BYTES = sizeof(long) };
	errno = 0;
	long word = ptrace(PTRACE_PEEKDATA, tid, selector & ~(uint64_t)(WORD_BYTES - 1), 0);
	return !errno && ((unsigned long)word >> 8 * (selector % WORD_BYTES) & 0xff) == SELECTOR_ALLOWS;
}

enum dispatch dispatch_of(pid_t tid)
{
	struct dispatch_config config = {.mode = MODE_OFF};
	if (ptrace((enum __ptrace_request)GET_DISPATCH, tid, sizeof(config), &config) == 0) {
		if (config.mode == MODE_OFF)
			return DISPATCH_OFF;
		return config.selector && selector_allows(tid, config.selector) ? DISPATCH_PASSES : DISPATCH_BLOCKS;
	}
	/* A kernel that knows the request, but has no dispatch, answers EINVAL. */
	return errno == EIO ? DISPATCH_UNKNOWN : DISPATCH_OFF;
}
