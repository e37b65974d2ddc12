/* SPDX-License-Identifier: MIT */
/**
 * The stacks of an answer. Paths are nodes of the names at which blocks were made. The heaviest are kept, the others
 * are lumped: only their function stays.
 *
 *     names                    answer, if only `c` is kept
 *     main                     main
 *       a                        a
 *         b  malloc                c  malloc
 *         c  malloc                [smaller stacks]
 *         d  malloc                  b
 *                                    d
 */
#ifndef XHEAP_CELLS_CELL_TREE_H
#define XHEAP_CELLS_CELL_TREE_H

#include "cells/cell_names.h"
#include "cells/cell_set.h"
#include "query/cull.h"
#include "query/frame_names.h"

/** Stacks that were lumped before they had names: a path without frames. */
struct cell_lump {
	uint32_t frame;  /**< node of the names: of one of them */
	uint32_t stacks; /**< how many they are */
};

/** The paths of a request: nodes of the names, and lumps behind all of those. */
struct cell_paths {
	uint32_t *nodes; /**< the heaviest path first; lumps come last */
	uint32_t count;
	uint32_t named;      /**< paths that are nodes of the names */
	uint64_t *bytes;     /**< by path, in this order: made in the range */
	uint32_t *askers;    /**< by node: of a path, the node of the names that asked */
	uint32_t name_nodes; /**< nodes of the names */
	const struct cell_lump *lumps;
	uint32_t lump_count;
};

/** A node of an answer. */
struct cell_node {
	uint32_t parent; /**< of the tree, plus 1; 0: none. Less than the node plus 1 */
	uint32_t frame;  /**< node of the names; HEAP_NONE: it has none */
	uint32_t name;   /**< of the names, or a word of cells/cell_names.h */
	uint32_t asker;  /**< node of the tree */
	uint32_t stacks; /**< that are lumped in it */
};

/** The tree of an answer. */
struct cell_tree {
	struct cell_node *nodes;
	uint32_t count;
	size_t capacity;
	uint32_t *of_path;  /**< by node of a path: its node in the tree */
	uint8_t *is_lumped; /**< likewise */
	uint32_t lumped_stacks;
};

/** Find the paths of cells whose nodes are those of the names, or name_nodes and above: lumps, whose array stays the
    caller's. The heaviest are first: by the largest of their shares of all bytes, of all blocks, of what was live at a
    moment, and of what was never freed. */
void cell_paths_find(struct cell_paths *paths, const struct cell_set *set, uint32_t moment, struct heap_names *names,
		     struct heap_cull *cull, const struct cell_lump *lumps, uint32_t lump_count);

/** Free the paths. */
void cell_paths_fini(struct cell_paths *paths);

/** Make the tree of the first `kept` paths, at most paths->named, with the others lumped. Of lumped paths, those behind
    the first `with_function` lose their function, too. */
void cell_tree_make(struct cell_tree *tree, const struct cell_paths *paths, uint32_t kept, uint32_t with_function,
		    const struct heap_names *names);

/** Free the tree. */
void cell_tree_fini(struct cell_tree *tree);

#endif
