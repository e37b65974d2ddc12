/* SPDX-License-Identifier: MIT */
/** The functions of a code object in a process's memory: an ELF file, as a runtime makes it for debuggers. Bytes of
    strangers. */
#ifndef XHEAP_SESSION_JIT_OBJECT_H
#define XHEAP_SESSION_JIT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JIT_LINE_BYTES = 512 /**< of a function, at most; the end of a longer name is cut off */ };

/** The memory of a process, of which so many pieces may be read. */
struct jit_memory {
	int fd; /**< /proc/PID/mem */
	uint32_t reads_left;
};

/** Read these bytes. Return false if not all of them are there, or no more may be read. */
bool jit_memory_read(struct jit_memory *memory, uint64_t address, void *to, size_t bytes);

/** Lines of a perf map. */
struct jit_lines {
	char *text;
	size_t bytes, room;
};

/** Add a line for each function of the code object at [address, address + size), from the symbol with this number on.
    Return 0, or the number of the symbol to go on with: there is no more room, or no more may be read. */
uint32_t jit_object_read(struct jit_memory *memory, uint64_t address, uint64_t size, uint32_t from,
			 struct jit_lines *lines);

#endif
