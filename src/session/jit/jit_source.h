/* SPDX-License-Identifier: MIT */
/**
 * The names that a runtime writes for the code that it compiles, of one process: its perf map, /tmp/perf-PID.map, as
 * the process sees that path and calls itself; or its jitdump file, which it has mapped as code to announce it.
 *
 *     jit_source_follow()   open the file once it is there, and read what is new in it: some MiB at a time
 *     jit_source_find()     whose code an address is, and was: the name is read from the file then
 *
 * Nothing here waits.
 */
#ifndef XHEAP_SESSION_JIT_SOURCE_H
#define XHEAP_SESSION_JIT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "session/jit/jit_files.h"
#include "session/jit/perf_map.h"

/** Times, [from_ticks, until_ticks). */
struct jit_span {
	uint64_t from_ticks, until_ticks;
};

/** The names of a process's code. */
struct jit_source;

/** Make a source; its file is not searched for yet. */
struct jit_source *jit_source_new(const struct jit_process *process);
void jit_source_free(struct jit_source *source);

/** Read what is new. ticks: the time now. is_last: the process has ended, so search again and read all. */
void jit_source_follow(struct jit_source *source, uint64_t ticks, bool is_last);

/** Return a number that grows whenever another answer is possible. */
uint32_t jit_source_generation(const struct jit_source *source);

/** Get the names of the code that a return address at that time is of, and the times at which the answer is the same.
    Return false if there is none. */
bool jit_source_find(struct jit_source *source, uint64_t address, uint64_t ticks, struct jit_names *names,
		     struct jit_span *span);

#endif
