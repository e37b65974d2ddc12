/* SPDX-License-Identifier: MIT */
/**
 * The list of code objects that a process keeps for debuggers, by the JIT interface of gdb. An image of the process has
 * the symbol __jit_debug_descriptor:
 *
 *     descriptor       first -> entry -> entry -> ...     the newest one first
 *                               |
 *                               ELF file in memory (jit_object.h)
 *
 * Pages of a stranger's memory may never come: a child reads them, and is lost then (os/losable.h). Each reading is
 * bounded, and goes on where the last one ended. A runtime may change the list meanwhile: a reading that leads nowhere
 * ends, and the next one begins anew. So the same line may come again.
 */
#ifndef XHEAP_SESSION_JIT_LIST_H
#define XHEAP_SESSION_JIT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "session/jit/jit_object.h"

enum { JIT_LIST_BYTES = 32 << 10 /**< of lines, that one reading may have */ };

/** How far the list was read. Zero it to begin. */
struct jit_list_place {
	uint64_t head; /**< a hash of the newest entry when the reading began */
	uint64_t stop; /**< the same of the reading before: what lies behind is known */
	uint64_t next; /**< the address of the next entry; 0: all were read */
	uint32_t steps, symbol;
};

/** A list. Zero it, and set memory to -1, to begin. */
struct jit_list {
	int memory; /**< /proc/PID/mem */
	uint32_t user, timeouts;
	uint64_t descriptor;
	struct jit_list_place place;
};

/** Search the images of a process for a list that has entries. Return false if there is none. */
bool jit_list_open(struct jit_list *list, pid_t pid, uid_t user);
void jit_list_close(struct jit_list *list);

/** Add lines of a perf map to those of `lines`, which has room for JIT_LIST_BYTES more. Return false if these are all
    for now. */
bool jit_list_read(struct jit_list *list, struct jit_lines *lines);

/** Return the address of a list with entries that the image at `base` has, 0 if it has none. For tests and below. */
uint64_t jit_descriptor_find(struct jit_memory *memory, uint64_t base);

/** Read lines of the list of this descriptor from the place on, which advances. For tests and below. */
void jit_list_walk(struct jit_memory *memory, uint64_t descriptor, struct jit_list_place *place,
		   struct jit_lines *lines);

#endif
