/* SPDX-License-Identifier: MIT */
/**
 * The processor as code in a target uses it: its counter, its system calls, its registers on a stack. Freestanding.
 *
 * Each processor has a folder with the same headers. `declared` has the declarations without bodies:
 * scripts/other-processor compiles all other code against them, so that code holds for every processor.
 */
#ifndef XHEAP_ARCH_CPU_H
#define XHEAP_ARCH_CPU_H

#if defined(__x86_64__)
#include "arch/x86_64/cpu_code.h"
#else
#include "arch/declared/cpu_code.h"
#endif

#endif
