/* SPDX-License-Identifier: MIT */
/** The memory of a process in the file of its core. Parts of it are copied again and again, each to its place. */
#ifndef XHEAP_INJECT_CORE_MEMORY_H
#define XHEAP_INJECT_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Where the memory [low, high) lies in the file. */
struct core_place {
	uint64_t low, high, offset;
};

/** Bytes that were read and are not written yet. */
struct core_delayed {
	uint64_t offset;
	size_t size;
};

/** Zero it to begin, and set the descriptors and `end`. */
struct core_memory {
	int from, to;              /**< /proc/PID/mem; the file */
	uint64_t end;              /**< of the places */
	struct core_place *places; /**< by address */
	size_t count, capacity;
	char *copy;         /**< a buffer */
	char *delayed_copy; /**< of the delayed bytes, one behind the other; NULL: none are delayed */
	size_t delayed_bytes, delayed_room;
	struct core_delayed *delayed;
	size_t delayed_count, delayed_capacity;
	int error; /**< of writing: a negative errno */
};

/** Give the memory a place, where it has none. */
void core_memory_place(struct core_memory *memory, uint64_t low, uint64_t high);

/** Visit the places of the memory. */
void core_memory_each(struct core_memory *memory, uint64_t low, uint64_t high,
		      void (*visit)(void *cookie, const struct core_place *place), void *cookie);

/** Copy memory that has a place. What cannot be read is left out. */
void core_memory_copy(struct core_memory *memory, uint64_t low, uint64_t high);

/** Let memory that has a place be as if it was never copied. */
void core_memory_clear(struct core_memory *memory, uint64_t low, uint64_t high);

/** From now on write what is copied, up to `bytes`, only at core_memory_write_delayed(): reading alone is faster. */
void core_memory_delay(struct core_memory *memory, size_t bytes);

/** Write what was delayed, and delay nothing more. */
void core_memory_write_delayed(struct core_memory *memory);

/** Write bytes to the file, unless there was an error before. */
void core_memory_write(struct core_memory *memory, const void *bytes, size_t size, uint64_t offset);

/** Free what it has of its own, which excludes the descriptors. */
void core_memory_fini(struct core_memory *memory);

#endif
