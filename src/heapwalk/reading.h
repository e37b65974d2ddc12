/* SPDX-License-Identifier: MIT */
/** A reading of a process's heap that is under way: what is known of its malloc, its deadlines, and how results are
    added. */
#ifndef XHEAP_HEAPWALK_READING_H
#define XHEAP_HEAPWALK_READING_H

#include "base/map.h"
#include "heapwalk/glibc_layout.h"
#include "heapwalk/heapwalk.h"

enum { READING_PAGE = 4096, READING_WINDOW_BYTES = 64 << 10, READING_TRIES = 5000 };

/** In a block's heap while it seems to be cached. */
enum { HEAPWALK_UNCONFIRMED = INT32_MIN };

/** A reading under way. */
struct heap_reading {
	struct heapwalk *walk; /**< where the results go */
	const struct region *region;
	struct glibc glibc;
	bool is_single_threaded; /**< the process has one thread, which takes no locks */
	struct map listed;       /**< chunks in fast bins */
	struct map keys;         /**< the random keys in the second word of cached blocks */
	struct map caches;       /**< addresses of the threads' caches, which are blocks that no caller owns */
	uint32_t thread_serial;  /**< the region's at the last caches_renew() */
	/** bytes from a thread's pointer to the address of its cache; 0: no thread names one */
	int64_t cache_offset;
	uint64_t data;           /**< where the library's writable data begins */
	bool has_no_cache_seen;  /**< no thread seems to have a cache */
	uint64_t until_ns;       /**< deadline by the monotonic clock */
	uint8_t *first, *second; /**< one window, read twice */
	uint32_t *offsets;       /**< of the chunks in the window */
	uint32_t window_chunks;  /**< their number */
};

/** Note when the reading begins. */
void reading_begin(struct heapwalk *walk);

/** Whether the process has ended. */
bool reading_is_gone(pid_t pid);

/** Whether the reading must end because the recording ends. */
bool reading_is_over(const struct heapwalk *walk);

/** Whether the reading must end: its deadline has passed, it makes no progress, or the recording ends. */
bool reading_is_late(const struct heap_reading *reading);

/** Note that the reading makes progress. */
void reading_has_advanced(struct heap_reading *reading);

/** Pause for a moment and return whether to try again: false if the reading is late or the process has ended. */
bool reading_goes_on(const struct heap_reading *reading);

/** Whether a thread of the region is in a heap call that it began before these ticks. */
bool reading_has_call(const struct region *region, uint64_t before_ticks);

/** Whether a block with this second word lies in a thread's cache. */
bool reading_has_key(const struct heap_reading *reading, uint64_t key);

/** Add the reason why some blocks are not known. */
void found_missing_add(struct heapwalk *walk, const char *text);

/** Add a heap and return its number, UINT32_MAX without memory. */
uint32_t found_heap_add(struct heapwalk *walk, uint64_t handle, uint16_t kind);

/** Add a block. Return false without memory. */
bool found_block_add(struct heapwalk *walk, uint64_t address, uint64_t usable_bytes, uint32_t heap);

/** Remove the blocks behind the first `count`. */
void found_blocks_drop(struct heapwalk *walk, size_t count);

#endif
