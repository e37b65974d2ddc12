/* SPDX-License-Identifier: MIT */
/** Registers of a stopped thread, as ptrace gives them. */
#ifndef XHEAP_ARCH_REGISTERS_H
#define XHEAP_ARCH_REGISTERS_H

/** Results of a call that a stop has interrupted, which no program sees (include/linux/errno.h of the kernel). For the
    last one the kernel resumes the call by restart_syscall, for the others it begins the call anew; for the last two
    only if no handler runs first. */
enum { RESTART_SYS = -512, RESTART_NO_INTERRUPT = -513, RESTART_NO_HANDLER = -514, RESTART_BLOCK = -516 };

#if defined(__x86_64__)
#include "arch/x86_64/registers_code.h"
#else
#include "arch/declared/registers_code.h"
#endif

#endif
