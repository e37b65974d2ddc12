/* SPDX-License-Identifier: MIT */
/** The blocks that an address of a process lay in, before and after a moment, and the live blocks beside it. */
#ifndef XHEAP_QUERY_BLOCK_HISTORY_H
#define XHEAP_QUERY_BLOCK_HISTORY_H

#include <stddef.h>

#include "base/position.h"
#include "table/table.h"

enum { HISTORY_BEFORE_MAX = 5, HISTORY_AFTER_MAX = 3, HISTORY_STEPS_MAX = 5 };

/** An allocation of the table. */
struct history_block {
	uint32_t id; /**< HEAP_NONE: there is none */
	struct heap_allocation row;
	struct heap_details details;
};

/** Of blocks that one realloc after the other made. */
struct history_chain {
	uint64_t count;                                /**< of all blocks */
	struct history_block steps[HISTORY_STEPS_MAX]; /**< the nearest ones, in the order of time */
	unsigned step_count;
};

/** A question and its answer. Set the members of the question, zero the rest. */
struct block_history {
	/* The question. */
	uint64_t address;
	uint32_t process;
	struct position at; /**< the moment, unless is_end */
	bool is_end;        /**< when the process ended, or the trace */
	/** set by block_history_inherit(): the blocks are those of `process` now, the parent, when it was forked */
	bool is_inherited;
	/* The answer. Blocks that contain the address are in the order of their beginnings. */
	uint64_t before_count, after_count;              /**< begun up to the moment, and after it */
	struct history_block before[HISTORY_BEFORE_MAX]; /**< the last ones */
	struct history_block after[HISTORY_AFTER_MAX];   /**< the first ones */
	/** live at the moment: of those that contain the address, the one that began last; and those that lie in no
	    other block and are nearest to the address below and above it */
	struct history_block live, below, above;
};

/** Answer all questions in one pass over the table. */
void block_history_find(struct block_history *histories, size_t count, const struct heap_table *table);

/** If the process has had no block there before the moment, and was forked from one with a live block there, make the
    history that of the parent at the fork. Nobody knows whether the child has freed its copy since. */
void block_history_inherit(struct block_history *history, const struct heap_table *table);

/** Set by_process[i] to the number of blocks of process i that contain the address. */
void block_history_count(uint64_t *by_process, const struct heap_table *table, uint64_t address);

/** Return the block that the address is in at the moment, or was in last; NULL: in none before the moment. */
const struct history_block *block_history_last(const struct block_history *history);

/** Return whether the address begins the block that it was in last, which had been given back: a free of it is a double
    one. */
bool block_history_is_given_back(const struct block_history *history);

enum { HISTORY_FAULTS_MAX = 64 };

/** Return how many of the table's faults, of the first HISTORY_FAULTS_MAX, are double frees. It takes a pass over the
    table if there are faults. */
unsigned block_history_double_frees(const struct heap_table *table);

/** Return block number i, from the oldest on, of those before the moment that are kept. */
const struct history_block *block_history_before(const struct block_history *history, unsigned i);

/** Return the number of blocks before the moment that are kept. */
unsigned block_history_kept(const struct block_history *history);

/** Return allocation `id` of the table, which is below its count; the id is HEAP_NONE if it cannot be read. */
struct history_block block_history_read(const struct heap_table *table, uint32_t id);

/** Find the blocks that reallocs made this block of, and those that they made of it. */
void block_history_chains(struct history_chain *earlier, struct history_chain *later, const struct heap_table *table,
			  const struct history_block *block);

/** Return the bytes that the block may use. */
static inline uint64_t history_usable(const struct history_block *block)
{
	return (uint64_t)block->row.size_bytes + heap_slack(&block->details);
}

#endif
