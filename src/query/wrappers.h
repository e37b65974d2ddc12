/* SPDX-License-Identifier: MIT */
/**
 * Wrappers: functions of the traced programs that only pass on what an allocator gives, such as xmalloc(). They are
 * found in the traces themselves. Definition: docs/semantics.md, "Frames".
 */
#ifndef XHEAP_QUERY_WRAPPERS_H
#define XHEAP_QUERY_WRAPPERS_H

#include "query/pattern.h"
#include "table/table.h"

/** A trace with the names of its code. */
struct wrapper_source {
	const struct heap_table *table;
	struct heap_names *names; /**< of one tree for all sources */
};

/** A function that was found. The texts live as long as the names. */
struct wrapper {
	const char *image;
	const char *symbol; /**< NULL: the function has no name, and lies from `low` to below `high` in the image */
	uint64_t low, high;
	uint64_t calls; /**< of which it is the innermost function that is culled for what it does */
};

struct wrappers;

/** Name the stacks of all allocations of the source. Stacks that only frees have get no names: they would take the
    lines from frames that both have. */
void wrapper_source_name(const struct wrapper_source *source);

/**
 * Find the wrappers of all sources together, in one pass over their sites. `allocators` are the functions that wrappers
 * call; functions that `libraries` has are no wrappers. Free the wrappers before the names.
 */
struct wrappers *wrappers_find(const struct wrapper_source *sources, unsigned count, struct heap_patterns *allocators,
			       struct heap_patterns *libraries);

/** Return the allocator around this node that its function belongs to, or 0. It is a function of C, at most three
    frames on, all of one image: sqlite3Malloc() calls a function without a name, and that one calls malloc(). */
uint32_t wrappers_allocator_around(struct heap_patterns *allocators, const struct heap_names *names, uint32_t node);

/** Free them; NULL is none. */
void wrappers_free(struct wrappers *wrappers);

/** Return whether the name is that of a wrapper. */
bool wrappers_has(struct wrappers *wrappers, struct heap_names *names, uint32_t name);

/** Return the wrappers, those that call an allocator themselves first; NULL has none. */
const struct wrapper *wrappers_list(const struct wrappers *wrappers, size_t *count);

/** Return the file names of images whose functions are not known, if at least 5 % of the calls and ten sites are from
    there: nothing can be said of wrappers in them. NULL has none. */
const char *const *wrappers_unknown_images(const struct wrappers *wrappers, size_t *count);

#endif
