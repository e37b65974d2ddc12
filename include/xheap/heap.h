/* SPDX-License-Identifier: MIT */
/**
 * Annotations for an allocator that no tracer can know: an arena, a pool, a slab. The allocator reports each block that
 * it hands out or takes back. xheap then records these blocks as it records those of malloc, with their stacks.
 *
 *     struct arena *arena = malloc(sizeof(*arena));
 *     xheap_heap_create(arena, "request arena");
 *     void *block = arena_take(arena, 100);
 *     xheap_heap_alloc(arena, block, 100);
 *     ...
 *     xheap_heap_destroy(arena);
 *     free(arena);
 *
 * The header is all that a program needs; there is no library. Without a tracer, a call is one instruction that does
 * nothing, and a return. The header supports C11 and C++11 and later, gcc 8 and later, and clang, on x86-64 Linux. For
 * another target, or with XHEAP_HEAP_OFF defined, the functions are empty. docs/annotations.md has the details.
 *
 * These rules hold for every call:
 *
 * Heaps.    `heap` is an address that belongs to one heap only while the heap exists, such as the address of its
 *     struct. xheap never reads memory at `heap`. A call with NULL for `heap` has no effect.
 * Threads.  Every thread may call every function. If threads share a heap, call while no other thread can get the
 *     block, for example while the thread holds the lock of the heap.
 * Results.  No function returns a value, fails or allocates. A recorded call may wait for a buffer, as malloc does.
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
 * Each function is an instruction of five bytes without effect, and a return. An ELF note in the executable locates it:
 * owner "xheap", type 1, the number of the function, and the distance from the note to the function. The note survives
 * strip.
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
/* Parameter `place` points to memory that the function does not read: the memory may be uninitialised. */
#if !defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 11
#define XHEAP_HEAP_POINTER(place) __attribute__((access(none, place)))
#else
#define XHEAP_HEAP_POINTER(place)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Report a new heap. Call it before the heap hands out its first block. `name` has at most 63 bytes and appears in
 * reports; NULL: no name. xheap copies the name during the call.
 */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_create(const void *heap XHEAP_HEAP_UNUSED, const char *name XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(1)

/** Report the end of the heap and of all its blocks. Call it before the heap frees the memory under them. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_destroy(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(2)

/**
 * Report the end of all blocks of the heap; the heap itself continues. Call it before the heap hands out their memory
 * again.
 */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_reset(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(3)

/**
 * Report a new block of `size` bytes, as the program requested them. Call it after the heap has chosen the block and
 * before another thread can free it. `block` NULL: the heap has no memory for it, a failed allocation.
 */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2)
XHEAP_HEAP_CALL xheap_heap_alloc(const void *heap XHEAP_HEAP_UNUSED, const void *block XHEAP_HEAP_UNUSED, size_t size XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(4)

/**
 * Report that block `old` became `block` with `size` bytes, moved or not. NULL and size 0 mean the same as for
 * realloc. If the block moved, call it before the heap hands out the memory of `old` again.
 */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2) XHEAP_HEAP_POINTER(3)
XHEAP_HEAP_CALL xheap_heap_realloc(const void *heap XHEAP_HEAP_UNUSED, const void *old XHEAP_HEAP_UNUSED, const void *block XHEAP_HEAP_UNUSED,
				   size_t size XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(5)

/** Report the free of a block. Call it before the heap can hand out the memory of the block again. */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2)
XHEAP_HEAP_CALL xheap_heap_free(const void *heap XHEAP_HEAP_UNUSED, const void *block XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(6)

/** Report that the calling thread has locked the heap. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_lock(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(7)

/** Report that the calling thread unlocks the heap. */
XHEAP_HEAP_POINTER(1)
XHEAP_HEAP_CALL xheap_heap_unlock(const void *heap XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(8)

/**
 * Report a new protection of `size` bytes of the heap's memory at `address`. `protection` has the bits of mprotect(),
 * such as PROT_READ.
 */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(2)
XHEAP_HEAP_CALL xheap_heap_protect(const void *heap XHEAP_HEAP_UNUSED, const void *address XHEAP_HEAP_UNUSED, size_t size XHEAP_HEAP_UNUSED,
				   int protection XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(9)

/**
 * As xheap_heap_create(), for a heap whose memory is reserved at once: `reserve` bytes from `base`, of which the first
 * `commit` bytes can be used now. NULL and 0 mean: unknown.
 */
XHEAP_HEAP_POINTER(1) XHEAP_HEAP_POINTER(3)
XHEAP_HEAP_CALL xheap_heap_create_sized(const void *heap XHEAP_HEAP_UNUSED, const char *name XHEAP_HEAP_UNUSED, const void *base XHEAP_HEAP_UNUSED,
					size_t reserve XHEAP_HEAP_UNUSED, size_t commit XHEAP_HEAP_UNUSED)
XHEAP_HEAP_BODY(10)

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
