/* SPDX-License-Identifier: MIT */
/**
 * The stacks of an answer. Paths are nodes of the names at which blocks were made. The heaviest are kept, the others
 * are lumped: only their function stays, if that is heavy.
 *
 *     names                    answer, if only `c` is kept, and the function d is light
 *     main                     main
 *       a                        a
 *         b  malloc                c  malloc
 *         c  malloc                [smaller stacks]
 *         d  malloc                  b
 */
#ifndef XHEAP_CELLS_CELL_TREE_H
#define XHEAP_CELLS_CELL_TREE_H

#include "cells/cell_names.h"
#include "cells/cell_scan.h"
#include "query/cull.h"
#include "query/frame_names.h"

enum { CELL_LEVELS = 40 };

/** A node of the names on a path. */
struct cell_path_node {
	uint32_t node, name;
	uint32_t parent; /**< its number among all of them, plus 1; 0: none */
	uint32_t level;  /**< k if its largest share, with all that it calls, is from 2^-k on, or CELL_LEVELS */
};

/** A path. */
struct cell_path {
	uint32_t node;                 /**< of the names */
	uint32_t asker;                /**< likewise: the node that asked */
	uint32_t name;                 /**< of the asker, or CELL_NO_STACK */
	uint32_t rank;                 /**< of the function that asked, from 0: the heaviest */
	uint32_t number, asker_number; /**< of both nodes among all of them, plus 1; 0: none */
	uint64_t made_bytes;           /**< in the range */
};

/** The paths of a request. */
struct cell_paths {
	struct cell_path *items; /**< the heaviest first */
	uint32_t count;
	struct cell_path_node *all; /**< all nodes on paths, but for 0; parents come first */
	uint32_t all_count;
	uint32_t *numbers;  /**< by node: its number among all, plus 1; 0: none of them */
	uint32_t functions; /**< that asked */
	uint32_t node_count;
};

/** What an answer keeps: the heaviest. */
struct cell_kept {
	uint32_t functions; /**< that asked */
	uint32_t paths;     /**< of these functions, among so many of all paths */
	uint32_t levels;    /**< frames under which others are lumped: all whose level is at most this one */
	uint32_t classed;   /**< paths with classes of size and lifetime, also if they are lumped */
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
	uint32_t *of_path; /**< by node of a path: its node in the tree */
	bool *is_lumped;   /**< likewise */
	bool *is_plain;    /**< likewise: the path has no classes */
	uint32_t lumped_stacks, lumped_functions;
	/* of its making */
	struct cell_kept kept;
	uint32_t *places, *above;
};

/** Find the paths among nodes of the names that have such weights, by node. The heaviest are first: by the largest of
    their shares of all bytes, of all blocks, of what was live at a moment, and of what was never freed. cull: as that
    of struct cells_source. */
void cell_paths_find(struct cell_paths *paths, const struct cell_weights *weights, struct heap_names *names,
		     struct heap_cull *cull);

/** Free the paths. */
void cell_paths_fini(struct cell_paths *paths);

/** Make the tree of what is kept. It is zeroed, or was made of the same paths before; a change of classes takes little
    time then. Other paths are lumped: under the last frame that they share with a kept one, and whose level allows it.
    Those of functions that are not kept lose the function, too. */
void cell_tree_make(struct cell_tree *tree, const struct cell_paths *paths, const struct cell_kept *kept);

/** Make each path plain that is in one node with a plain one, so that cells of the tree may lose classes, too: those of
    the nodes that are set in `nodes`, by node of the tree; those that are set already are plain. */
void cell_tree_spread_plain(struct cell_tree *tree, const struct cell_paths *paths, bool *nodes);

/** Free the tree. */
void cell_tree_fini(struct cell_tree *tree);

#endif
