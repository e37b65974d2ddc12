/* SPDX-License-Identifier: MIT */
/** Links from stacks to what the blocks were allocated for: contexts of threads, in a sample. */
#ifndef XHEAP_EXPORT_LINKS_H
#define XHEAP_EXPORT_LINKS_H

#include "base/thread_context.h"
#include "export/export_tree.h"

/** Links of a stack, at most. */
enum { EXPORT_LINKS_MAX = 4 };

/** A part of a node's figures: of blocks that were allocated with this context, in the time of export_range(). It has
    no peak. */
struct export_link {
	uint32_t node;
	struct thread_context context;
	uint64_t values[EXPORT_FIGURE_COUNT];
};

struct export_links {
	struct export_link *items; /**< by node, most allocated bytes first */
	size_t count, capacity;
	uint32_t *first; /**< by node, and one more: the place of its first link; NULL: there are none at all */
};

/** Find the links of a tree. If the trace proves damaged, `out` has an error. End it with export_links_fini(). */
void export_links_make(struct export_links *links, struct export_tree *tree, struct sink *out);

/** Return the number of parts of the node's figures: one for each link, and the rest. */
unsigned export_links_parts(const struct export_links *links, uint32_t node);

/** Set the figures of such a part. Return its context; NULL: it is the rest, which comes last and may be nothing. */
const struct thread_context *export_links_part(const struct export_links *links, const struct export_tree *tree,
					       uint32_t node, unsigned part, uint64_t values[EXPORT_FIGURE_COUNT]);

/** Free the links. */
void export_links_fini(struct export_links *links);

#endif
