/* SPDX-License-Identifier: MIT */
/** The blocks of one process by their addresses, to find the one around an address. Blocks of annotated heaps may lie
    in others; those of allocators lie beside each other. An ended block stays until it is met: the caller's
    nest_is_live() says that it has ended. */
#ifndef XHEAP_MATCH_NEST_H
#define XHEAP_MATCH_NEST_H

#include <stdbool.h>
#include <stddef.h>

#include "table/live.h"

#define NEST_NONE UINT32_MAX

/** Addresses in order. Zero it to begin. */
struct nest_starts {
	struct live nodes;
	uint32_t granule_count; /**< of these, nodes of single addresses */
};

/** Add an address; adding it again has no effect. */
void nest_starts_add(struct nest_starts *starts, uint64_t address);
/** Remove an address. */
void nest_starts_remove(struct nest_starts *starts, uint64_t address);

/** Find the last address up to and including `at`. Return false if there is none. */
bool nest_starts_last(const struct nest_starts *starts, uint64_t at, uint64_t *found);

/** A block of an annotated heap. */
struct nest_span {
	uint64_t address, bytes;
	uint32_t row, heap; /**< the allocation, or NEST_NONE when that has ended; and its heap */
	uint32_t below;     /**< the span that began at the same address before this one, or NEST_NONE */
	/** the span around it, valid while that is allocation enclosing_row; or NEST_NONE */
	uint32_t enclosing, enclosing_row;
};

/** The spans of a process. Zero it to begin. */
struct nest {
	struct nest_starts plain; /**< of allocators' blocks */
	struct nest_starts annotated;
	struct live at; /**< by address: `current` is the span that began there last */
	struct nest_span *spans;
	size_t span_count, span_capacity;
	uint32_t free; /**< list of unused spans, by `below`: NEST_NONE - index; 0: none */
};

/** Return whether an allocation is still live. */
typedef bool nest_is_live(void *context, uint32_t row);

/** Return the last live span that began at the address, and forget dead ones; NULL: none. */
struct nest_span *nest_at(struct nest *nest, uint64_t address, nest_is_live *is_live, void *context);

/** Return the innermost live span around the address, or NULL. */
struct nest_span *nest_enclosing(struct nest *nest, uint64_t address, nest_is_live *is_live, void *context);

/** Return the last live span that begins between `from` and `to`, both included, or NULL. */
struct nest_span *nest_last_within(struct nest *nest, uint64_t from, uint64_t to, nest_is_live *is_live, void *context);

/** Add a span. enclosing: the result of nest_enclosing(). */
void nest_add(struct nest *nest, const struct nest_span *span, const struct nest_span *enclosing);
/** Free the spans. */
void nest_fini(struct nest *nest);

/** Whether the tree of addresses has all its branches and no others; and whether each span is in one list, that of its
    address or that of those that are free (base/check.h). */
bool nest_starts_is_valid(const struct nest_starts *starts);
bool nest_is_valid(const struct nest *nest);

#endif
