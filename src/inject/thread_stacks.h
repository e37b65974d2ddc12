/* SPDX-License-Identifier: MIT */
/** Checks of stopped threads: where each thread is, and where it will return to. */
#ifndef XHEAP_INJECT_THREAD_STACKS_H
#define XHEAP_INJECT_THREAD_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/crowd.h"
#include "inject/inject.h"
#include "inject/unwinding.h"
#include "os/proc.h"

/** Addresses to which no thread may return: inside patches (`jumps`, sorted by address) or, without jumps, inside
    ranges of the recorder's code. */
struct places {
	const struct inject_jump *jumps;
	uint32_t jump_count;
	const struct inject_piece *ranges;
	uint32_t range_count;
};

/** A process whose threads are checked. */
struct stacks {
	pid_t pid;
	int memory; /**< /proc/PID/mem, owned by the caller */
	struct places places;
	/** if a stack cannot be read whole: check the part that its mapping has; otherwise such a stack counts as
	    leading to a place */
	bool is_lenient;
	struct proc_map *maps;
	int map_count;
	struct unwinding unwinding;
};

/** Return the jump whose patch covers the address, except as its first byte; NULL: none. */
const struct inject_jump *stacks_jump_around(const struct places *places, uint64_t address);

/** Prepare the check of a process; read nothing yet. places is copied, its arrays stay the caller's. */
void stacks_init(struct stacks *stacks, pid_t pid, int memory, const struct places *places, bool is_lenient);
/** Replace the patches to check for. */
void stacks_set_jumps(struct stacks *stacks, const struct inject_jump *jumps, uint32_t count);
/** Free the maps and unwind tables. */
void stacks_fini(struct stacks *stacks);

/** Read the process's maps anew, and the unwind tables that were missing. This takes long: call it while threads
    run. */
void stacks_prepare(struct stacks *stacks);

/**
 * Return whether the stopped thread is at one of the places or may return to one.
 * If its stack can be unwound, the frames alone decide. Otherwise each word of the stack counts if the instruction
 * before that address is a call, or if it is the program counter that a signal frame saved.
 */
bool stacks_lead(struct stacks *stacks, const struct stand *stand);

/** As stacks_lead(), but ignore the thread's own program counter. */
bool stacks_lead_back(struct stacks *stacks, const struct stand *stand);

#endif
