/* SPDX-License-Identifier: MIT */
/** The names of functions to hook, and the symbols that show what an image is. */
#ifndef XHEAP_HOOK_ENTRY_NAMES_H
#define XHEAP_HOOK_ENTRY_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/hook.h"

/** The owner of a name. An address with several names is shown by the name of the earliest family. */
enum hook_family {
	FAMILY_C,          /**< malloc and its like: of the image that defines it */
	FAMILY_OPERATOR,   /**< C++ operators: only of an allocator that has its own */
	FAMILY_EXTENDED,   /**< jemalloc's mallocx and its like */
	FAMILY_JEMALLOC,   /**< je_ */
	FAMILY_RUST,       /**< _rjem_ */
	FAMILY_MIMALLOC,   /**< mi_ */
	FAMILY_TCMALLOC,   /**< tc_ */
	FAMILY_LIBC,       /**< __libc_ */
	FAMILY_ANNOTATION, /**< xheap/heap.h: by a note, whatever symbols there are */
	FAMILY_PYTHON,     /**< by the interpreter's table, whatever symbols there are */
	FAMILY_SYSTEM,     /**< no heap function: enum hook_extra */
	FAMILY_MARK,       /**< not hooked: enum hook_mark */
	FAMILY_COUNT
};

/** Symbols that are searched for but not hooked. */
enum hook_mark {
	MARK_GLIBC,        /**< in glibc's libc.so only */
	MARK_GLIBC_MALLOC, /**< inside of glibc's malloc */
	MARK_MUSL,         /**< inside of musl */
	MARK_MAIN_ARENA,
	MARK_CACHE_SHUTDOWN,  /**< frees the blocks in the cache of a thread that ends */
	MARK_DEBUG_STRUCT,    /**< _r_debug */
	MARK_DEBUG_POINTER,   /**< musl: points to it */
	MARK_KNOWN_ALLOCATOR, /**< of an allocator whose malloc_usable_size only reads; by family, if it has one */
	MARK_USABLE_SIZE,     /**< by family */
	MARK_PYTHON_EVAL,     /**< CPython's evaluation of a frame */
	MARK_PYTHON_COLD,     /**< the part of it that the compiler split off */
	MARK_PYTHON_OWN_STATE,
	MARK_PYTHON_CURRENT_STATE,
	MARK_PYTHON_CODE,
	MARK_PYTHON_TEXT,
	MARK_PYTHON_BYTES,
	MARK_PYTHON_VERSION, /**< the number, from 3.11 on */
	MARK_PYTHON_ARENAS,  /**< returns the functions for arenas */
	MARK_PYTHON_RUNTIME,
	MARK_PYTHON_CALLERS, /**< this and the next ones: call what tables of allocators name, table by table */
	MARK_PYTHON_CALLERS_LAST = MARK_PYTHON_CALLERS + HOOK_PYTHON_TABLES * HOOK_PYTHON_FUNCTIONS - 1,
	MARK_PYTHON_8, /**< this and the next two: functions that a minor version was the first to have */
	MARK_PYTHON_9,
	MARK_PYTHON_10,
	MARK_PYTHON_OTHER, /**< of a build whose structures are others: free-threaded, or with traced references */
	MARK_COUNT
};

/** A row of the table of names. */
struct hook_name {
	const char *name;
	uint8_t function; /**< enum heap_function, enum hook_extra or enum hook_mark */
	uint8_t family;
	/** MARK_USABLE_SIZE: the family whose blocks it measures; MARK_KNOWN_ALLOCATOR: the family, or 0 */
	uint8_t of_family;
};

/** Return the row of a name; its index in the table is its rank (earlier is better). NULL: the name is not in the
    table. */
const struct hook_name *hook_name_find(const char *name);

/** Return the row of a function of xheap/heap.h by its number there; NULL: there is none. */
const struct hook_name *hook_annotation_find(uint32_t number);

/** Return the rank among the names of one address: smaller is better. */
unsigned hook_name_rank(const struct hook_name *name);

#endif
