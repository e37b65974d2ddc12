/* SPDX-License-Identifier: MIT */
/**
 * What the formats of other tools are made of: the stacks of a report over one source as a tree, from outside in, with
 * the figures of the blocks that were allocated there. Node 0 is the root; a node comes behind its caller. The numbers
 * of all nodes add up to the totals.
 */
#ifndef XHEAP_EXPORT_TREE_H
#define XHEAP_EXPORT_TREE_H

#include "export/report.h"

/** X(id, number of a report's rows, what it is called in a tool, whether it is bytes) */
#define EXPORT_FIGURES(X) \
	X(TOTAL_COUNT, total_count, "alloc_objects", false) \
	X(TOTAL_BYTES, total_bytes, "alloc_space", true) \
	X(OUTSTANDING_COUNT, outstanding_count, "inuse_objects", false) \
	X(OUTSTANDING_BYTES, outstanding_bytes, "inuse_space", true) \
	X(PEAK_COUNT, peak_count, "peak_objects", false) \
	X(PEAK_BYTES, peak_bytes, "peak_space", true)

enum export_figure {
#define X(id, number, name, is_bytes) EXPORT_##id,
	EXPORT_FIGURES(X)
#undef X
		EXPORT_FIGURE_COUNT
};

/** The figures, by enum export_figure. */
extern const struct export_figure_row {
	const char *name;
	bool is_bytes;
} export_figures[EXPORT_FIGURE_COUNT];

/** A frame as tools know it. All texts are harmless (text_make_harmless()). */
struct export_frame {
	const char *text;               /**< the function, or what stands for it */
	const char *mangled;            /**< "" when unknown or the same */
	const char *image;              /**< file name of the executable or library; "" when there is none */
	const char *source;             /**< source file; "" when unknown */
	const struct trace_image *file; /**< that image; NULL: none, or several */
	uint32_t image_id;              /**< of the trace; TRACE_NONE without `file` */
	uint32_t line;                  /**< 0: unknown */
	uint64_t offset;                /**< in the image, a return address; 0: unknown, or several */
	bool is_inlined;                /**< into its caller */
	bool is_split;                  /**< no frame: what a window is split by; right below the root */
	uint32_t by;                    /**< of a split */
};

struct export_node {
	uint32_t frame;  /**< of the root: 0, which is an empty frame */
	uint32_t parent; /**< the caller */
	uint64_t values[EXPORT_FIGURE_COUNT];
};

struct export_tree {
	const struct report *report;
	const struct action_source *source;
	struct export_frame *frames;
	uint32_t frame_count;
	size_t frame_capacity;
	struct export_node *nodes;
	int64_t past_ns; /* what the past of the report reached to; 0: it has none */
	uint32_t node_count;
	size_t node_capacity;
	/* Found on the way. */
	struct intern texts, frame_keys;
	struct map sources;        /**< address of a text -> its place in `texts` */
	struct export_name *names; /**< by name of the source */
	uint32_t name_count;
	struct map children; /**< (parent, frame) -> node */
	struct map named;    /**< (node of the split, node of the names) -> node */
	struct map leaves;   /**< (by, site) -> node */
	uint32_t *path;      /**< room for the longest stack */
	size_t path_capacity;
};

/** Make the tree. The report has one source, whose stacks are named. End it with export_tree_fini(). */
void export_tree_make(struct export_tree *tree, const struct report *report);

/** Free the tree. */
void export_tree_fini(struct export_tree *tree);

/** Return a node's frame. */
static inline const struct export_frame *export_tree_frame(const struct export_tree *tree, uint32_t node)
{
	return &tree->frames[tree->nodes[node].frame];
}

/** Return whether blocks were allocated at the node itself. */
bool export_node_has_blocks(const struct export_node *node);

/** Return the node of the cell's stack. That of a free is added if no block was allocated there: its names must be
    there before the tree is made (heap_names_name_sites()). */
uint32_t export_tree_leaf(struct export_tree *tree, const struct heap_cell *cell);

/** Places in code: a function, with those that are inlined there. Places with the same frames are one. Zero it. */
struct export_places {
	struct intern keys;
	uint32_t *known; /**< by node: the place that begins there, from inside out; 0: not known yet */
};

struct export_place {
	uint32_t number; /**< from 1 */
	uint32_t last;   /**< node of the function that has the inlined ones */
	bool is_new;     /**< it is the first time */
};

/** Return the place that begins at the node. */
struct export_place export_place_of(struct export_places *places, const struct export_tree *tree, uint32_t node);

/** Free the places. */
void export_places_fini(struct export_places *places);

/** Return the time that the totals are about. */
struct heap_range export_range(const struct export_tree *tree);

/** Return the command line of the trace's first process; "" if it is not known. */
const char *export_command(const struct export_tree *tree);

/** Return the pid of that process; 0 if it is not known. */
uint32_t export_pid(const struct export_tree *tree);

/** Return, by image of the trace, where it was mapped first; NULL: nowhere. The caller frees the array. */
const struct trace_mapping **export_mappings(const struct export_tree *tree);

/** Return the image's build-id in hexadecimal digits, "" without one; the caller frees it. */
char *export_build_id(const struct trace_image *image);

#endif
