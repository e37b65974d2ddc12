/* SPDX-License-Identifier: MIT */
/**
 * Frames as people know them. A trace has code addresses; a report has names: two call sites in one function are one
 * frame, and stacks that differ only in such addresses are one stack. Names form a tree as the trace's stacks do.
 */
#ifndef XHEAP_QUERY_FRAME_NAMES_H
#define XHEAP_QUERY_FRAME_NAMES_H

#include <stdio.h>

#include "symbols/symbols.h"
#include "table/table.h"

/** A frame's name: frames of one name are the same frame. */
struct heap_name {
	const char *image;   /**< file name, or NULL */
	const char *symbol;  /**< NULL when unknown */
	const char *mangled; /**< as the file has it; NULL when that is unknown or the same */
	const char *text;    /**< "image!symbol", "image+0xoffset", or a mark */
	/** For people, as short as it may be (query/short_frames.h): no two names of a tree read alike. They are not
	    NULL after heap_names_shorten(), except that there is no short_symbol without a symbol. */
	const char *short_symbol, *short_text;
	uint32_t image_id; /**< without a symbol: the image, for heap_names_image(), or TRACE_NONE */
	uint64_t offset;   /**< and the address in it */
	bool is_mark;      /**< no frame of the program: "[truncated]", "[no unwind data]" */
	bool is_entry;     /**< an allocation function that was called, as the recorder knew it */
	bool is_python;    /**< a function of Python */
	bool is_jit;       /**< a function that a runtime has compiled, by the runtime's name for it */
	/** of the own code of CPython, or of a runtime that compiles, which is folded in traces with managed frames */
	bool is_interpreter;
	bool is_interpreted; /**< stands for all functions that a runtime interprets and does not name */
	bool has_own_row;    /**< it is that where all compiled functions have names: none of them stands for it */
	bool is_bundled;     /**< managed, of the modules or packages that come with the runtime */
	bool is_library;     /**< of a library that all programs have (query/library_frames.h); as the short forms */
};

/** Return whether the name is a place in an image that no symbol names. */
static inline bool heap_name_is_offset(const struct heap_name *name)
{
	return name->image && !name->symbol;
}

/** Return whether a runtime runs and names the function. Its name is never shortened, and it lies in no image. */
static inline bool heap_name_is_managed(const struct heap_name *name)
{
	return name->is_python || name->is_jit;
}

/** A node of the tree; node 0 is the empty stack. A fact that differs among the addresses of the node is absent. */
struct heap_frame {
	uint32_t parent; /**< the caller */
	uint32_t name;
	uint32_t image;   /**< for heap_names_image(), or TRACE_NONE; of the first trace of the tree, its own number */
	uint32_t line;    /**< 0: absent */
	uint64_t offset;  /**< 0: absent, as for managed code, which lies in no image */
	const char *file; /**< NULL: absent */
	bool is_inlined;
	bool has_offset;  /**< this frame, or one around it, is a place in an image that no symbol names */
	bool has_managed; /**< this frame, or one around it, is of managed code */
	bool has_user;    /**< so is one of the user's own, also one that is interpreted and has no name */
	bool has_method;  /**< so is one of the user's own that a runtime has compiled and named */
	/** a native method of Java's own packages, or what it calls, up to code that is managed or has no image */
	bool is_in_java;
};

/** One of the functions that a code address lies in. */
struct heap_address_function {
	uint32_t name;
	const char *file; /**< NULL: unknown */
	uint32_t line;    /**< 0: unknown */
	bool is_inlined;
};

/** What a frame is. */
enum heap_frame_kind {
	HEAP_FRAME_NATIVE,
	HEAP_FRAME_INLINED,
	HEAP_FRAME_PYTHON,
	HEAP_FRAME_JIT,
	HEAP_FRAME_KIND_COUNT
};

/** The words for them. */
extern const char *const heap_frame_kinds[HEAP_FRAME_KIND_COUNT];

static inline enum heap_frame_kind heap_frame_kind(const struct heap_name *name, bool is_inlined)
{
	return name->is_python ? HEAP_FRAME_PYTHON
	       : name->is_jit  ? HEAP_FRAME_JIT
	       : is_inlined    ? HEAP_FRAME_INLINED
			       : HEAP_FRAME_NATIVE;
}

struct heap_names;
struct trace_entry;
struct trace_image;

/** Begin to name the code of the trace. Without `with_lines`, all lines of a function are one frame. Free the names
 *  before the trace and the symbols. */
struct heap_names *heap_names_new(const struct trace *trace, struct symbols *symbols, bool with_lines);

/** Begin to name the code of another trace in the tree of `first`: frames of one name have one number and one node in
 *  both, and so do addresses without a name in images with one build-id. An address that only one of these traces has a
 *  name for has it in all of them, if the build-id is the same: begin the names of all traces before the first use of
 *  one. Free the names of all these traces before the first of the traces, in any order. */
struct heap_names *heap_names_new_beside(const struct heap_names *first, const struct trace *trace,
					 struct symbols *symbols);

/** Free the names; NULL is none. */
void heap_names_free(struct heap_names *names);

/** Have no more stacks named when the flag is set (base/cancel.h): they have the empty stack's node then. The flag
    belongs to the caller. */
void heap_names_cancel_by(struct heap_names *names, const bool *is_cancelled);

/** Return the flag; NULL: there is none. */
const bool *heap_names_cancelled_by(const struct heap_names *names);

/** Return the node of the stack, beginning with the allocation function; 0 when no stack was recorded. */
uint32_t heap_names_site(struct heap_names *names, const struct heap_site *site);

/** Return the node of a stack of the trace, without an allocation function. */
uint32_t heap_names_stack(struct heap_names *names, uint32_t stack);

/** Return the functions of a code address, a place in the frames of the trace: inlined ones first, `count` of them, at
    least one. Valid until the next call for these names. */
const struct heap_address_function *heap_names_address(struct heap_names *names, uint32_t frame, uint32_t *count);

/** Name the stacks of all sites of the table, also those that only frees have: heap_names_count() is all names then. */
void heap_names_name_sites(struct heap_names *names, const struct heap_table *table);

/** Set [*low, *high) to the addresses of the function that a name without a symbol lies in. Return false if it is not
    known. */
bool heap_names_function_range(struct heap_names *names, const struct heap_name *name, uint64_t *low, uint64_t *high);

/** Set *address to where an allocation function of the trace lies in its image's file. Return false if it is not
    known. */
bool heap_names_entry_address(const struct heap_names *names, const struct trace_entry *entry, uint64_t *address);

/** Return the image, or NULL for TRACE_NONE. */
const struct trace_image *heap_names_image(const struct heap_names *names, uint32_t image);

/** Return the number of this trace's addresses so far that another trace of the tree has the names of. */
uint32_t heap_names_lent_count(const struct heap_names *names);

/** Return the names without versions, such as "libssl.so", that stand for images of which the traces of the tree have
 *  other versions: frames of these images match by them. *count: how many, so far. */
const char *const *heap_names_versioned(const struct heap_names *names, size_t *count);

/** Return the file names of the traces' programs, that of the first trace first, if they differ and all go by the first
 *  one: each trace of the tree is of one program. *count: how many, so far; 0: none do. */
const char *const *heap_names_matched_programs(const struct heap_names *names, size_t *count);

/** Return the number of names so far; they are numbered from 0. */
uint32_t heap_names_count(const struct heap_names *names);

/** Return the number of nodes so far; they are numbered from 0, a caller before those that it calls. */
uint32_t heap_names_node_count(const struct heap_names *names);

/** Return a node; valid until the next heap_names_site() or heap_names_stack() of the tree. */
const struct heap_frame *heap_names_frame(const struct heap_names *names, uint32_t node);

/** Return a name; valid as long. */
const struct heap_name *heap_names_name(const struct heap_names *names, uint32_t name);

/** Set the short forms of all names so far. They may change when more names are made: call it when all stacks have been
 *  named, and again after more of them were. It costs nothing if none were. */
void heap_names_shorten(struct heap_names *names);

/** Return the frames from the node on, joined by ';', innermost first, up to the node `end` around them, without it; 0:
 *  all. "[no stack]" stands for the empty stack. The caller frees the text. */
char *heap_names_text(const struct heap_names *names, uint32_t node, uint32_t end);

/** Order two stacks as strcmp() orders their texts, heap_names_text(node, 0). */
int heap_names_compare(const struct heap_names *names, uint32_t one, uint32_t other);

/** Return the file names of images that have frames in the stacks named so far but no symbols; in order, each once.
    Valid until the next call for these names. */
const char *const *heap_names_without_symbols(struct heap_names *names, size_t *count);

/** Return whether an image with this file name has frames in the stacks named so far. */
bool heap_names_has_image(const struct heap_names *names, const char *file_name);

/** Return the path of an image of the trace with this file name; NULL: there is none. */
const char *heap_names_image_path(const struct heap_names *names, const char *file_name);

/** Return the number of images that have frames in the stacks named so far. */
size_t heap_names_image_count(const struct heap_names *names);

#endif
