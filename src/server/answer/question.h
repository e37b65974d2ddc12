/* SPDX-License-Identifier: MIT */
/** What a page asks about the blocks of a trace. */
#ifndef XHEAP_SERVER_QUESTION_H
#define XHEAP_SERVER_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

enum { QUESTION_BOUNDS_MAX = 4, QUESTION_INTERVALS_MAX = 1024 };

/** What the rows of blocks are sorted by. X(id, word) */
#define BLOCKS_ORDERS(X) \
	X(SIZE, "size") \
	X(BIRTH, "made") \
	X(LIFETIME, "lived") \
	X(END, "ended") \
	X(ADDRESS, "address") \
	X(FUNCTION, "function")
#define X(id, word) BLOCKS_BY_##id,
enum blocks_order { BLOCKS_ORDERS(X) BLOCKS_ORDER_COUNT };
#undef X

/** How many rows of blocks there are in an answer, and how many may stand before them. */
enum { QUESTION_ROWS_MAX = 500, QUESTION_OFFSET_MAX = 100000 };

/** A question. Zeroed, it is about all blocks of the whole run. */
struct question {
	bool has_range; /**< times are in ns since the start of the trace */
	int64_t from_ns, to_ns;
	bool has_moment;
	int64_t at_ns;
	unsigned intervals; /**< of cells; 0: the usual number */
	int64_t bounds_ns[QUESTION_BOUNDS_MAX];
	unsigned bound_count;
	unsigned classes;     /**< bits HEAP_CLASS_BIT(class); 0: all */
	const char *node;     /**< the outermost frames of stacks, with line feeds between them; NULL: all stacks */
	const char *ends;     /**< the innermost frames of stacks, the innermost one first; NULL: all stacks */
	bool is_merged;       /**< in `node` and `ends` a recursive call is the same frame as the call above it */
	bool is_whole;        /**< `ends` begin with the frame that was called last, not with the one that asked */
	const char *asker;    /**< the key of the function that asked; "image!": any of that image; NULL: any */
	const char *through;  /**< the key of a function that stacks go through; NULL: any */
	const char *filter;   /**< words of a filter; NULL: none */
	const char *function; /**< the key of the function whose source lines are asked for; NULL: none */
	uint32_t line;        /**< of it; 0: the one with the most bytes */
	enum blocks_order sort;
	bool is_rising;         /**< the least one is first */
	uint32_t offset, limit; /**< which rows of blocks */
	uint32_t id;            /**< of a block */
	int64_t held_ns;        /**< of a trace that is recorded: it is asked as of this time; 0: as it is */
	uint32_t seen;          /**< the picture of a recording that the page has; 0: none */
};

/** Set a member by its word in a request and its text, which the question refers to. Return 0, or -EINVAL with the
    reason in `why`; words that it does not know are ignored. */
int question_set(struct question *question, const char *word, const char *text, struct diag *why);

/** Check that the members go together. Return 0, or -EINVAL with the reason in `why`. */
int question_check(const struct question *question, struct diag *why);

#endif
