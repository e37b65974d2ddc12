/* SPDX-License-Identifier: MIT */
/** Where memory of ours may lie in a process, so that the process's own use of its address space goes on as without
    it. */
#ifndef XHEAP_INJECT_PLACE_H
#define XHEAP_INJECT_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/proc.h"

/** Bytes that a jump with 32 bits certainly leads over. */
#define PLACE_REACH UINT64_C(0x7fff0000)

/** The lowest address of memory of ours: below are null pointers with offsets, and what emulators map at fixed
    places. */
#define PLACE_LOWEST (UINT64_C(4) << 20)

/** Addresses that the heap behind the program break has, or may come to have. */
struct place_heap {
	uint64_t low, high;
};

/** What is wanted: all of it between low and high, as near to wish as can be. */
struct place_wish {
	uint64_t low, high, wish;
};

struct place_heap place_heap_of(pid_t pid, const struct proc_map *maps, int count);

/** Whether any of these bytes is one that stays the program's. */
bool place_is_kept(const struct place_heap *heap, uint64_t at, uint64_t bytes);

/** In reach of all code from low to high. */
struct place_wish place_near(uint64_t low, uint64_t high);

/** Anywhere, beside what the kernel places. */
struct place_wish place_anywhere(void);

/** The address of so many bytes (pages) that are free and not kept for the program; 0: there are none. */
uint64_t place_find(const struct proc_map *maps, int count, const struct place_heap *heap,
		    const struct place_wish *place, uint64_t bytes);

#endif
