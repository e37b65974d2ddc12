/* SPDX-License-Identifier: MIT */
/**
 * From a 64-bit key to a 32-bit value, keys are never removed. Unlike base/map it tells when memory runs out, since the
 * logger goes on then, and its places cannot be guessed, since the keys may be an enemy's. Zero it to begin.
 */
#ifndef XHEAP_TRACE_SEEDED_MAP_H
#define XHEAP_TRACE_SEEDED_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct index_cell;

struct index {
	struct index_cell *cells;
	uint32_t count, bits;
};

/** The value of the key, added as 0 if it is new; *added tells. NULL: no memory. Valid until the next index_add(). */
uint32_t *index_add(struct index *index, uint64_t key, bool *added);

/** The value of the key, or NULL. */
uint32_t *index_find(const struct index *index, uint64_t key);

void index_fini(struct index *index);

/** A hash of two numbers that differs from run to run. */
uint64_t index_hash(uint64_t a, uint64_t b);

#endif
