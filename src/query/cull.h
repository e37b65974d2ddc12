/* SPDX-License-Identifier: MIT */
/** Culling: frames that allocate on behalf of others are taken off the innermost end of stacks. Definition:
    docs/semantics.md. */
#ifndef XHEAP_QUERY_CULL_H
#define XHEAP_QUERY_CULL_H

#include "query/pattern.h"

/** Zero it to begin. */
struct heap_cull {
	struct heap_patterns frames;
	/** the built-in list is in use: the function that was called is culled, whatever its name */
	bool with_entries;
};

/** Use the built-in list (cull/default.txt). */
void heap_cull_use_default(struct heap_cull *cull);

/** Return whether the list has the frame of this node: one that allocates on behalf of others. */
bool heap_cull_matches(struct heap_cull *cull, const struct heap_names *names, uint32_t node);

/** Return the first node of the stack, from inside out, that is not culled; the outermost real frame's if all are. */
uint32_t heap_cull_node(struct heap_cull *cull, const struct heap_names *names, uint32_t node);

/** Free the patterns. */
void heap_cull_fini(struct heap_cull *cull);

#endif
