/* SPDX-License-Identifier: MIT */
/** Where the threads of a process are, and where they will come back to. */
#ifndef XHEAP_INJECT_THREAD_STACKS_H
#define XHEAP_INJECT_THREAD_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/crowd.h"
#include "inject/inject.h"
#include "inject/unwinding.h"
#include "os/proc.h"

/** Addresses that nobody may come back to: within patches (jumps, by address), or else within ranges of code of
    ours. */
struct places {
	const struct inject_jump *jumps;
	uint32_t jump_count;
	const struct inject_piece *ranges;
	uint32_t range_count;
};

/** What is known of a process while its threads are looked at. */
struct stacks {
	pid_t pid;
	int memory; /**< /proc/PID/mem; the caller's */
	struct places places;
	/** a stack that is not known as a whole is taken for what its mapping has of it, else for one that leads
	    there */
	bool is_lenient;
	struct proc_map *maps;
	int map_count;
	struct unwinding unwinding;
};

/** The jump whose patch covers the address, but not as its first byte; NULL: none. */
const struct inject_jump *stacks_jump_around(const struct places *places, uint64_t address);

void stacks_init(struct stacks *stacks, pid_t pid, int memory, const struct places *places, bool is_lenient);
void stacks_fini(struct stacks *stacks);

/** Read the process's maps anew, and the unwind tables that were missed. This takes long: not while threads stand. */
void stacks_prepare(struct stacks *stacks);

/**
 * Whether the stopped thread is at one of the places or may come back to one. A word of its stack counts where the
 * instruction before that address is a call, or where it is the program counter that a signal frame saved; unless the
 * stack can be unwound: then the frames count alone.
 */
bool stacks_lead(struct stacks *stacks, const struct stand *stand);

/** The same but for the thread's own program counter, wherever that is. */
bool stacks_lead_back(struct stacks *stacks, const struct stand *stand);

#endif
