/* SPDX-License-Identifier: MIT */
/**
 * Which block lies in which: the blocks of one process by where they begin, so that the one around an address is found.
 * Blocks of annotated heaps may lie in others; those of allocators lie beside each other. What has ended stays until it
 * is met: the caller tells, when asked.
 */
#ifndef XHEAP_MATCH_NEST_H
#define XHEAP_MATCH_NEST_H

#include <stdbool.h>
#include <stddef.h>

#include "table/live.h"

#define NEST_NONE UINT32_MAX

/** Addresses in order. Zero it to begin. */
struct nest_starts {
	struct live nodes;
};

void nest_starts_add(struct nest_starts *starts, uint64_t address);
void nest_starts_remove(struct nest_starts *starts, uint64_t address);

/** The last one up to and with `at`; false when there is none. */
bool nest_starts_last(const struct nest_starts *starts, uint64_t at, uint64_t *found);

/** A block of an annotated heap. */
struct nest_span {
	uint64_t address, bytes;
	uint32_t row, heap; /**< the allocation, and whose it is */
	uint32_t below;     /**< the one that began at the same address before it, or NEST_NONE */
	/** the span that it lies in, as long as that is this allocation; or NEST_NONE */
	uint32_t enclosing, enclosing_row;
};

/** Zero it to begin. */
struct nest {
	struct nest_starts plain; /**< of allocators' blocks */
	struct nest_starts annotated;
	struct live at; /**< by address: current is the span that began there last */
	struct nest_span *spans;
	size_t span_count, span_capacity;
	uint32_t free; /**< list of those that are none any more, by below: NEST_NONE - place; 0: none */
};

/** Whether an allocation is live still. */
typedef bool nest_is_live(void *context, uint32_t row);

/** The span that began last at the address and is live; those that are not are forgotten. NULL: none. */
struct nest_span *nest_at(struct nest *nest, uint64_t address, nest_is_live *is_live, void *context);

/** The innermost live span around the address, or NULL. */
struct nest_span *nest_enclosing(struct nest *nest, uint64_t address, nest_is_live *is_live, void *context);

/** The last live span that begins from `from` up to `to`, or NULL. */
struct nest_span *nest_last_within(struct nest *nest, uint64_t from, uint64_t to, nest_is_live *is_live, void *context);

/** A block begins; around: what nest_enclosing() found. */
void nest_add(struct nest *nest, const struct nest_span *span, const struct nest_span *enclosing);
void nest_fini(struct nest *nest);

/** Whether the tree of addresses has all its branches and no others; and whether each span is in one list, that of its
    address or that of those that are free (base/check.h). */
bool nest_starts_is_valid(const struct nest_starts *starts);
bool nest_is_valid(const struct nest *nest);

#endif
