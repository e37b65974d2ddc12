/* SPDX-License-Identifier: MIT */
/** Registers of a stopped thread, as ptrace gives them. */
#ifndef XHEAP_ARCH_REGISTERS_H
#define XHEAP_ARCH_REGISTERS_H

#if defined(__x86_64__)
#include "arch/x86_64/registers_code.h"
#else
#include "arch/declared/registers_code.h"
#endif

#endif
