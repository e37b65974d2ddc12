/* SPDX-License-Identifier: MIT */
/**
 * Where the code that a process compiled while it ran lies, by generations: a runtime moves code, and uses the room of
 * code that is gone again. A range replaces every range that it overlaps from its time on.
 *
 *     jit_ranges_add()     ranges in the order in which the runtime made them
 *     jit_ranges_find()    the range that had the address at a time
 */
#ifndef XHEAP_SESSION_JIT_RANGES_H
#define XHEAP_SESSION_JIT_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JIT_RANGES_MAX = 1 << 21, /**< of all processes, at a time */
	JIT_PAST_MAX = 1 << 14    /**< replaced ones that are kept, of a process */
};

/** Code of one function, [start, end). */
struct jit_range {
	uint64_t start, end;
	uint64_t from_ticks; /**< it was made at this time or later */
	uint64_t place;      /**< of its name: the offset in the file of the source */
	uint32_t bytes;      /**< of the name there */
	uint64_t lines;      /**< of a jitdump: the offset of the record with its lines; 0: there is none */
	uint32_t number;     /**< the order in which ranges were added; set by jit_ranges_add() */
};

/** Zero it to begin. */
struct jit_ranges {
	struct jit_range *now, *added, *past; /**< `now` is sorted by start, without overlaps */
	size_t count, capacity, added_count, added_capacity, past_count, past_capacity;
	uint32_t number;
};

/** Add a range. Return false if there are too many. All threads that add ranges are one. */
bool jit_ranges_add(struct jit_ranges *ranges, const struct jit_range *range);

/** Return the range that had the address at the time; one that was only named later, if there is no other; NULL: there
    is none. Valid until a range is added. */
const struct jit_range *jit_ranges_find(struct jit_ranges *ranges, uint64_t address, uint64_t ticks);

/** Free the ranges; there are none then. */
void jit_ranges_fini(struct jit_ranges *ranges);

#endif
