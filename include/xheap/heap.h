/* SPDX-License-Identifier: MIT */
/**
 * Annotations for allocators that no tracer can know: an arena, a pool, a slab. They tell xheap which blocks such an allocator hands out, with
 * the stack of who asked, as it sees those of malloc.
 *
 *     struct arena *arena = malloc(sizeof(*arena));
 *     xheap_heap_create(arena, "request arena");
 *     void *block = arena_take(arena, 100);
 *     xheap_heap_alloc(arena, block, 100);
 *     ...
 *     xheap_heap_destroy(arena);
 *     free(arena);
 *
 * There is nothing to link with. Where nobody traces, a call is one instruction that does nothing, and a return. C11, C++11 and later, gcc from 8
 * on and clang, on x86-64 Linux; elsewhere, or with XHEAP_HEAP_OFF defined, the calls are empty. Everything else: docs/annotations.md.
 *
 * `heap` is any address that is one heap's own while the heap is there, such as that of the structure that describes it. It is never read.
 */
#ifndef XHEAP_HEAP_H
#define XHEAP_HEAP_H

#include <stddef.h>

#if defined(__x86_64__) && !defined(__ILP32__) && defined(__ELF__) && defined(__GNUC__) && !defined(XHEAP_HEAP_OFF)
#define XHEAP_HEAP_IS_ON 1
#else
#define XHEAP_HEAP_IS_ON 0
#endif

#if XHEAP_HEAP_IS_ON && defined(__clang__)
#define XHEAP_HEAP_ALONE noinline
#elif XHEAP_HEAP_IS_ON
#define XHEAP_HEAP_ALONE noipa
#endif

/*
 * Each call is a function of five bytes of nothing and a return. A note in the executable tells where: owner "xheap", type 1, a number that says which
 * call it is, and the distance from here to the function. The note stays when symbols are stripped.
 */
#if XHEAP_HEAP_IS_ON
#define XHEAP_HEAP_BODY(number) \
	{ \
		__asm__ volatile("990:\n\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret\n\t" \
				 ".pushsection .note.xheap, \"a\", @note\n\t" \
				 ".balign 4\n\t.long 6, 8, 1\n\t.asciz \"xheap\"\n\t.balign 4\n\t.long " #number "\n\t.long 990b - .\n\t" \
				 ".popsection"); \
	}
#define XHEAP_HEAP_CALL __attribute__((naked, unused, XHEAP_HEAP_ALONE, no_instrument_function)) static void
#else
#define XHEAP_HEAP_BODY(number) {}
#define XHEAP_HEAP_CALL __attribute__((unused)) static inline void
#endif
#define XHEAP_HEAP_UNUSED __attribute__((unused))
/* What is pointed to by that parameter is not looked at: it may be memory that nobody has written to yet. */
#if !defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 11
#define XHEAP_HEAP_POINTER(place) __attribute__((access(none, place)))
#else
#define XHEAP_HEAP_POINTER(place)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** There is a heap, with a name of up to 63 bytes (NULL: none). Before its first block. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_create(const void *heap XHEAP_HEAP_UNUSED, const char *name XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(1)

/** The heap goes, and all of its blocks with it. Before its memory is given back. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_destroy(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(2)

/** All of its blocks go; the heap stays. Before the first of them is handed out again. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_reset(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(3)

/** A block was handed out, or with NULL could not be. After that, before anybody else has it. */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2)
XHEAP_HEAP_CALL xheap_heap_alloc(const void *heap XHEAP_HEAP_UNUSED, const void *block XHEAP_HEAP_UNUSED, size_t size XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(4)

/** A block was resized from `old`, moved or not; meanings of NULL are those of realloc. Before the memory of a moved one is handed out again. */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2) XHEAP_HEAP_POINTER(3)
XHEAP_HEAP_CALL xheap_heap_realloc(const void *heap XHEAP_HEAP_UNUSED, const void *old XHEAP_HEAP_UNUSED, const void *block XHEAP_HEAP_UNUSED,
				   size_t size XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(5)

/** A block is taken back. Before it can be handed out again. */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2)
XHEAP_HEAP_CALL xheap_heap_free(const void *heap XHEAP_HEAP_UNUSED, const void *block XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(6)

/** The calling thread has the heap's lock. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_lock(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(7)

/** The calling thread gives it up. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_unlock(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(8)

/** So much of the heap's memory has another protection: PROT_READ and its like of <sys/mman.h>. */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2)
XHEAP_HEAP_CALL xheap_heap_protect(const void *heap XHEAP_HEAP_UNUSED, const void *address XHEAP_HEAP_UNUSED, size_t size XHEAP_HEAP_UNUSED,
				   int protection XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(9)

#ifdef __cplusplus
}
#endif

#undef XHEAP_HEAP_IS_ON
#undef XHEAP_HEAP_ALONE
#undef XHEAP_HEAP_BODY
#undef XHEAP_HEAP_CALL
#undef XHEAP_HEAP_UNUSED
#undef XHEAP_HEAP_POINTER

#endif
