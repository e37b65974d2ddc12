/* SPDX-License-Identifier: MIT */
/** The addresses that may be taken for the recorder's memory in a process. The process's own use of its address space
    must continue as without it. */
#ifndef XHEAP_INJECT_PLACE_H
#define XHEAP_INJECT_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/proc.h"

/** Bytes that a jump with a displacement of 32 bits reaches in any case. */
#define PLACE_REACH UINT64_C(0x7fff0000)

/** The lowest address to take: below are null pointers with offsets, and fixed addresses of emulators. */
#define PLACE_LOWEST (UINT64_C(4) << 20)

/** The addresses of the program break's heap: of this run, present and future, and of other runs. */
struct place_heap {
	uint64_t low, high;
	uint64_t begin; /**< where this run's heap begins; between `low` and this lie only heaps of other runs */
};

/** The wanted addresses: all bytes between low and high, as near to `wish` as possible. */
struct place_wish {
	uint64_t low, high, wish;
};

/** Return the addresses of the process's heap, from its maps. */
struct place_heap place_heap_of(pid_t pid, const struct proc_map *maps, int count);

/** Return whether any of these bytes is kept for the program. */
bool place_is_kept(const struct place_heap *heap, uint64_t at, uint64_t bytes);

/** Return the addresses within reach of all code from low to high. */
struct place_wish place_near(uint64_t low, uint64_t high);

/** Return the wish for any address, beside the kernel's own choices. */
struct place_wish place_anywhere(void);

/** Return the address of free pages of this size that are not kept for the program. If there are none, they lie before
    the heap of this run, as high as is possible; 0: not even there. */
uint64_t place_find(const struct proc_map *maps, int count, const struct place_heap *heap,
		    const struct place_wish *place, uint64_t bytes);

#endif
