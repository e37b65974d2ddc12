/* SPDX-License-Identifier: MIT */
/**
 * Which blocks of a process can be reached from its roots, by the rules of LeakSanitizer: each aligned word of a root,
 * or of a block that is reached, which is an address in a block, reaches that block.
 *
 *     reach_new()                         blocks, and a memory to read them from
 *     reach_word(), reach_range(), ...    roots
 *     reach_follow()                      what they reach, and what only lost blocks reach
 */
#ifndef XHEAP_REACH_REACH_H
#define XHEAP_REACH_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** X(id, word): how a block is reached, the strongest last. INDIRECT: only from lost blocks. INTERIOR: no word that is
    reached has its first address. */
#define REACH_STATES(X) X(LOST, "lost") X(INDIRECT, "indirect") X(INTERIOR, "interior") X(START, "start")

enum reach_state {
#define X(id, word) REACH_##id,
	REACH_STATES(X)
#undef X
		REACH_STATE_COUNT
};

extern const char *const reach_state_words[REACH_STATE_COUNT];

/** A block. */
struct reach_block {
	uint64_t address, size_bytes;
	uint32_t id; /**< the caller's */
	/** before: REACH_START if it counts as reached in any case, else REACH_LOST; after reach_follow():
	    enum reach_state */
	uint8_t state;
};

/** A memory, and how it is read. */
struct reach_memory {
	/** Return how many bytes from the address on there are, at most `size`. */
	size_t (*read)(void *context, uint64_t address, void *to, size_t size);
	/** Return the first address from this one on where there may be bytes; UINT64_MAX: there are none. */
	uint64_t (*next)(void *context, uint64_t address);
	void *context;
};

struct reach;

/** Begin with blocks, which are sorted by address and stay the caller's, as the memory does. */
struct reach *reach_new(struct reach_block *blocks, uint32_t count, const struct reach_memory *memory);

/** Take a word of a root, such as a register. */
void reach_word(struct reach *reach, uint64_t word);

/** Take the words of a root, which the caller has read. */
void reach_words(struct reach *reach, const uint64_t *words, size_t count);

/** Take the aligned words of the memory between two addresses. What is not there is left out. */
void reach_range(struct reach *reach, uint64_t low, uint64_t high);

/** Follow all words from the roots on, and set the states of all blocks. */
void reach_follow(struct reach *reach);

/** Free it; NULL is allowed. */
void reach_free(struct reach *reach);

#endif
