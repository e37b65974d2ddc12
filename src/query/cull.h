/* SPDX-License-Identifier: MIT */
/** Culling: frames that allocate on behalf of others are taken off the innermost end of stacks. Definition:
    docs/semantics.md. */
#ifndef XHEAP_QUERY_CULL_H
#define XHEAP_QUERY_CULL_H

#include "query/pattern.h"
#include "query/wrappers.h"

/** Zero it to begin. */
struct heap_cull {
	struct heap_patterns frames;     /**< what was typed, and lists of the user's */
	struct heap_patterns lists;      /**< built-in lists */
	struct heap_patterns allocators; /**< the built-in list of what wrappers call */
	/** the built-in lists are all in use: the function that was called is culled, whatever its name, and so are
	    wrappers */
	bool with_entries;
	struct wrappers *wrappers; /**< found by heap_cull_prepare(); NULL: none */
	bool is_prepared;          /**< by heap_cull_prepare() */
	/** by node, of the names that it was prepared with: what heap_cull_user_node() returned, or HEAP_NONE */
	uint32_t *user_nodes;
	uint32_t user_node_count;
};

/** The names of the parts of the built-in list (cull/default.txt): room for one, and for all. */
enum { CULL_NAME_BYTES = 24, CULL_NAMES_BYTES = 400 };

/** Write the names of all parts, "allocators, containers, ...", for messages. */
void heap_cull_list_names(char names[CULL_NAMES_BYTES]);

/** Use all of the built-in list, and wrappers. */
void heap_cull_use_default(struct heap_cull *cull);

/** Use a part of the built-in list, by its name in any case. Return false: there is none. */
bool heap_cull_use_list(struct heap_cull *cull, const char *name);

/** Set `nearest` to the name of the part that is most like the word. Return false: none is like it. */
bool heap_cull_nearest_list(const char *word, char nearest[CULL_NAME_BYTES]);

/** Find the wrappers of all sources of a report together, if wrappers are culled, and settle the frames that were typed
    (query/pattern.h). To be called before the first heap_cull_node(). Return false if that was done already: a report
    within a report uses what the outer one has found. */
bool heap_cull_prepare(struct heap_cull *cull, const struct wrapper_source *sources, unsigned count);

/** Free what heap_cull_prepare() found; before the names are freed. */
void heap_cull_forget(struct heap_cull *cull);

/** Return whether the list has the frame of this node: one that allocates on behalf of others. */
bool heap_cull_matches(struct heap_cull *cull, struct heap_names *names, uint32_t node);

/** Return whether reports for people fold the frame of this node: the list has it, it is the function that was called,
    or it is of a library that all programs have. `cull` may be NULL. */
bool heap_cull_folds(struct heap_cull *cull, struct heap_names *names, uint32_t node);

/** Return the first frame of the stack, from inside out, that belongs to the user's own code: none that is folded.
    Without such a frame, the node itself. */
uint32_t heap_cull_user_node(struct heap_cull *cull, struct heap_names *names, uint32_t node);

/** Return the first node of the stack, from inside out, that is not culled. If all are, the outermost real
    frame's: with the default list alone that is none of an allocator, and none that only begins what runs, if there is
    another (docs/semantics.md, "Frames"). */
uint32_t heap_cull_node(struct heap_cull *cull, struct heap_names *names, uint32_t node);

/** Free the patterns. */
void heap_cull_fini(struct heap_cull *cull);

#endif
