/* SPDX-License-Identifier: MIT */
/** Functions that are compiled for the processor's widest registers as well. The choice is made when the program
    starts, before gcc's thread sanitizer starts; clang has no such choice. */
#ifndef XHEAP_BASE_WIDE_REGISTERS_H
#define XHEAP_BASE_WIDE_REGISTERS_H

#if defined(__SANITIZE_THREAD__) || defined(__clang__) || !defined(__x86_64__)
#define WIDE_REGISTERS
#else
#define WIDE_REGISTERS __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#endif

#endif
