/* SPDX-License-Identifier: MIT */
/**
 * What only one processor knows and code in a target needs, too: its counter, its system calls, its registers on a
 * stack. Freestanding.
 *
 * Each processor has a folder with the same headers. `declared` has the declarations without bodies:
 * scripts/other-processor compiles against it for another one, so what is not in src/arch holds for all.
 */
#ifndef XHEAP_ARCH_CPU_H
#define XHEAP_ARCH_CPU_H

#if defined(__x86_64__)
#include "arch/x86_64/cpu_code.h"
#else
#include "arch/declared/cpu_code.h"
#endif

#endif
