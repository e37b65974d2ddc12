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

/** The paths of a request. */
struct cell_paths {
	uint32_t *nodes;      /**< of the names, the heaviest path first */
	uint32_t *cell_count; /**< by path */
	uint32_t count;
	uint32_t *askers; /**< by node of the names: of a path, the node that asked */
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
	uint32_t *of_path;      /**< by node of the names: of a path, its node in the tree */
	uint32_t lumped_stacks; /**< paths */
	uint8_t *is_lumped;     /**< by node of the names */
};

/** Find the paths of cells whose nodes are those of the names, the heaviest first: by the largest of their shares of
    all bytes, of all blocks, of what was live at a moment, and of what was never freed. */
void cell_paths_find(struct cell_paths *paths, const struct cell_set *set, uint32_t moment, struct heap_names *names,
		     struct heap_cull *cull);

/** Free the paths. */
void cell_paths_fini(struct cell_paths *paths);

/** Make the tree of the first `kept` paths, with the others lumped. Of lumped paths, those behind the first `named`
    lose their function, too. */
void cell_tree_make(struct cell_tree *tree, const struct cell_paths *paths, uint32_t kept, uint32_t named,
		    const struct heap_names *names);

/** Free the tree. */
void cell_tree_fini(struct cell_tree *tree);

#endif
