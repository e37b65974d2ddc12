/* SPDX-License-Identifier: MIT */
/** The stack of a thread in a core. */
#ifndef XHEAP_COREFILE_CORE_STACK_H
#define XHEAP_COREFILE_CORE_STACK_H

#include <stdbool.h>
#include <stdint.h>

enum { CORE_STACK_MAX = 64 };

/** Code addresses, the innermost one first. */
struct core_stack {
	uint64_t pcs[CORE_STACK_MAX];
	bool is_return[CORE_STACK_MAX]; /**< it is the address behind a call */
	unsigned count;
};

/** Walk the stack of the thread of the core that fd is open on, as far as the images' unwind data lead. */
void core_stack_read(struct core_stack *stack, int fd, uint32_t tid);

#endif
