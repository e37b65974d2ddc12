/* SPDX-License-Identifier: MIT */
/** The kinds of events and the functions that make them, declared once. The recorder's hooks, the search for entries,
    the trace, the reports and the manual use these lists. */
#ifndef XHEAP_BASE_EVENTS_H
#define XHEAP_BASE_EVENTS_H

#include <stdint.h>

/*
 * X(ID, action word of dump, word of JSON counts). The numbers go into trace files: append, never reorder.
 */
/* clang-format off */
#define EVENT_KINDS(X)                     \
	X(ALLOC, "Alloc", "alloc")         \
	X(REALLOC, "ReAlloc", "realloc")   \
	X(FREE, "Free", "free")            \
	X(CREATE, "Create", "create")      \
	X(DESTROY, "Destroy", "destroy")   \
	X(LOCK, "Lock", "lock")            \
	X(UNLOCK, "Unlock", "unlock")      \
	X(PROTECT, "Protect", "protect")   \
	X(RESERVE, "Reserve", "reserve")   \
	X(RELEASE, "Release", "release")   \
	X(EARLIER, "Earlier", "earlier")
/* clang-format on */

#define X(id, action, word) EVENT_##id,
enum event_kind { EVENT_KINDS(X) EVENT_KIND_COUNT };
#undef X

/*
 * X(ID, canonical name, kind of its events, parameters in the order of dump's args column).
 * The numbers go into regions and trace files: append, never reorder.
 */
/* clang-format off */
#define HEAP_FUNCTIONS(X)                                                     \
	X(MALLOC, "malloc", ALLOC, "size")                                    \
	X(CALLOC, "calloc", ALLOC, "count,size")                              \
	X(REALLOC, "realloc", REALLOC, "pointer,size")                        \
	X(REALLOCARRAY, "reallocarray", REALLOC, "pointer,count,size")        \
	X(FREE, "free", FREE, "pointer")                                      \
	X(CFREE, "cfree", FREE, "pointer")                                    \
	X(MEMALIGN, "memalign", ALLOC, "alignment,size")                      \
	X(ALIGNED_ALLOC, "aligned_alloc", ALLOC, "alignment,size")            \
	X(POSIX_MEMALIGN, "posix_memalign", ALLOC, "memptr,alignment,size")   \
	X(VALLOC, "valloc", ALLOC, "size")                                    \
	X(PVALLOC, "pvalloc", ALLOC, "size")                                  \
	X(FREE_SIZED, "free_sized", FREE, "pointer,size")                     \
	X(FREE_ALIGNED_SIZED, "free_aligned_sized", FREE, "pointer,alignment,size") \
	X(NEW, "operator new", ALLOC, "size")                                 \
	X(NEW_ALIGNED, "operator new", ALLOC, "size,alignment")               \
	X(DELETE, "operator delete", FREE, "pointer")                         \
	X(DELETE_SIZED, "operator delete", FREE, "pointer,size")              \
	X(DELETE_ALIGNED, "operator delete", FREE, "pointer,alignment")       \
	X(DELETE_SIZED_ALIGNED, "operator delete", FREE, "pointer,size,alignment") \
	X(MALLOC_ALIGNED, "malloc_aligned", ALLOC, "size,alignment")          \
	X(REALLOC_ALIGNED, "realloc_aligned", REALLOC, "pointer,size,alignment") \
	X(MALLOCX, "mallocx", ALLOC, "size,flags")                            \
	X(RALLOCX, "rallocx", REALLOC, "pointer,size,flags")                  \
	X(DALLOCX, "dallocx", FREE, "pointer,flags")                          \
	X(SDALLOCX, "sdallocx", FREE, "pointer,size,flags")                   \
	X(HEAP_CREATE, "xheap_heap_create", CREATE, "heap")                   \
	X(HEAP_DESTROY, "xheap_heap_destroy", DESTROY, "heap")                \
	X(HEAP_RESET, "xheap_heap_reset", DESTROY, "heap")                    \
	X(HEAP_ALLOC, "xheap_heap_alloc", ALLOC, "heap,size")                 \
	X(HEAP_REALLOC, "xheap_heap_realloc", REALLOC, "heap,pointer,size")   \
	X(HEAP_FREE, "xheap_heap_free", FREE, "heap,pointer")                 \
	X(HEAP_LOCK, "xheap_heap_lock", LOCK, "heap")                         \
	X(HEAP_UNLOCK, "xheap_heap_unlock", UNLOCK, "heap")                   \
	X(HEAP_PROTECT, "xheap_heap_protect", PROTECT, "heap,pointer,size,protection") \
	X(HEAP_CREATE_SIZED, "xheap_heap_create_sized", CREATE, "heap,base,reserve,commit") \
	X(OBJECT_NEW, "mi_heap_new", CREATE, "")                              \
	X(OBJECT_NEW_IN, "mi_heap_new_in_arena", CREATE, "arena")             \
	X(OBJECT_DELETE, "mi_heap_delete", DESTROY, "heap")                   \
	X(OBJECT_DESTROY, "mi_heap_destroy", DESTROY, "heap")                 \
	X(OBJECT_MALLOC, "mi_heap_malloc", ALLOC, "heap,size")                \
	X(OBJECT_CALLOC, "mi_heap_calloc", ALLOC, "heap,count,size")          \
	X(OBJECT_ALIGNED, "mi_heap_malloc_aligned", ALLOC, "heap,size,alignment") \
	X(OBJECT_REALLOC, "mi_heap_realloc", REALLOC, "heap,pointer,size")    \
	X(OBJECT_REALLOCARRAY, "mi_heap_reallocn", REALLOC, "heap,pointer,count,size") \
	X(OBJECT_REALLOC_ALIGNED, "mi_heap_realloc_aligned", REALLOC, "heap,pointer,size,alignment") \
	X(ARENA_ALLOC, "arena_alloc", ALLOC, "size")                          \
	X(ARENA_FREE, "arena_free", FREE, "pointer,size")
/* clang-format on */

#define X(id, name, kind, parameters) FUNCTION_##id,
enum heap_function { HEAP_FUNCTIONS(X) FUNCTION_COUNT };
#undef X

/** The functions of xheap/heap.h begin here. They allocate nothing; they report what an allocator did. */
enum {
	FUNCTION_FIRST_ANNOTATION = FUNCTION_HEAP_CREATE,
	FUNCTION_ANNOTATION_COUNT = FUNCTION_HEAP_CREATE_SIZED + 1 - FUNCTION_FIRST_ANNOTATION
};

/** Return whether a function is one of xheap/heap.h. */
static inline int function_is_annotation(uint32_t function)
{
	return function - FUNCTION_FIRST_ANNOTATION < FUNCTION_ANNOTATION_COUNT;
}

/** Return whether a function gets its size as a count and the bytes of one element. */
static inline int function_is_counted(uint32_t function)
{
	return function == FUNCTION_CALLOC || function == FUNCTION_REALLOCARRAY || function == FUNCTION_OBJECT_CALLOC ||
	       function == FUNCTION_OBJECT_REALLOCARRAY;
}

/** Further facts about an event; bits of the trace's flags column. */
enum event_flag {
	EVENT_FAILED = 1,       /**< the call returned NULL or an error; result holds errno or the error number */
	EVENT_IN_FLIGHT = 2,    /**< the call had not returned when its process died */
	EVENT_IN_SIGNAL = 4,    /**< it was made by a signal handler, or a new handler, within another heap call */
	EVENT_NO_STACK = 8,     /**< no stack was recorded (not wanted, or dropped under pressure) */
	EVENT_TRUNCATED = 16,   /**< the stack's outer part is missing */
	EVENT_NO_DURATION = 32, /**< the duration was not recorded */
	/** the block that this ReAlloc freed is aggregated, and so is the event that freed it */
	EVENT_FOLDED_BEFORE = 64,
	EVENT_FOLDED_AFTER = 128 /**< the thread's next event is aggregated and not in the trace */
};
#define EVENT_FOLDED (EVENT_FOLDED_BEFORE | EVENT_FOLDED_AFTER)

/** Counts of events by how their stacks end: at the stack's start, cut, or where unwind data is missing. All other
    events have no stack. */
struct stack_ends {
	uint64_t whole, truncated, unwindless;
};

/** Add the counts of `ends` to `to`. */
static inline void stack_ends_add(struct stack_ends *to, const struct stack_ends *ends)
{
	to->whole += ends->whole;
	to->truncated += ends->truncated;
	to->unwindless += ends->unwindless;
}

#endif
