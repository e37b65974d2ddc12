/* SPDX-License-Identifier: MIT */
/**
 * Which blocks of a running process several looks found lost, one look after the other, and since when:
 *
 *     leak_looks_begin()                  a look
 *     leak_looks_see()                    each block that is live then
 *     leak_looks_end()
 *     leak_looks_find()                   since when it is lost
 *
 * A look that is begun once more replaces what it had before.
 */
#ifndef XHEAP_ACTION_LEAK_LOOKS_H
#define XHEAP_ACTION_LEAK_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What became of a block that a look found lost. */
enum looked_state { LOOKED_LOST, LOOKED_REACHABLE, LOOKED_FREED, LOOKED_STATE_COUNT };

/** A block that a look found lost. Its address and its beginning in the trace name it. */
struct looked_block {
	uint64_t address, size_bytes;
	int64_t birth_ns;
	int64_t since_ns; /**< when the first look was that found it lost, as every one since did */
	uint32_t since;   /**< the number of that look, from 1 */
	uint8_t state;    /**< enum looked_state: in the newest look */
	bool is_shown;    /**< the caller's: it passes the filter */
};

/** Blocks in the order of address and beginning. */
struct looked_blocks {
	struct looked_block *items;
	size_t count, capacity;
};

/** Looks at the processes that had one pid, one after the other. Zero it to begin. */
struct leak_looks {
	struct looked_blocks now, before; /**< found lost up to the newest look, and up to the one before */
	uint32_t process;                 /**< at which the newest look was: its number in the trace */
	uint32_t number, first;           /**< of the newest look, and of the first one at this process, from 1 */
	int64_t at_ns, first_ns;          /**< when these were */
};

/** Begin look `number`, which is the newest one or the next one, at a process by its number in the trace. What was found
    in another one, before an exec or of the same pid, is forgotten. */
void leak_looks_begin(struct leak_looks *looks, uint32_t process, uint32_t number, int64_t at_ns);

/** Take a block that is live now. Of the members only the name and the size count. */
void leak_looks_see(struct leak_looks *looks, const struct looked_block *block, bool is_lost);

/** All blocks that are live were taken. */
void leak_looks_end(struct leak_looks *looks);

/** Return what is known of a block that this look or an earlier one found lost; NULL: none did. */
struct looked_block *leak_looks_find(const struct leak_looks *looks, uint64_t address, int64_t birth_ns);

/** Free it; it can begin again. */
void leak_looks_fini(struct leak_looks *looks);

#endif
