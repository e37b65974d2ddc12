/* SPDX-License-Identifier: MIT */
/**
 * The blocks of glibc's malloc that were there before a process was attached to. They are read while its threads run:
 * nobody stands for it (docs/decisions/012-earlier-blocks.md says why that is exact).
 */
#ifndef XHEAP_HEAPWALK_HEAPWALK_H
#define XHEAP_HEAPWALK_HEAPWALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "region/region.h"

/** Where a block lies: as struct region_heap says it. */
struct heapwalk_heap {
	uint64_t handle;
	uint16_t kind;
};

struct heapwalk_block {
	uint64_t address, usable_bytes;
	uint32_t heap;
};

/** A thread that there was at the attach. */
struct heapwalk_thread {
	pid_t tid;
	uint64_t pointer; /**< its thread pointer */
	uint64_t cpu_ns;  /**< what it had used at the first look; 0: not looked yet */
	bool is_settled;  /**< the heap call that it may have been in is over */
};

/** A walk. Filled by inject_attach(), then by heapwalk_run(). */
struct heapwalk {
	pid_t pid;
	uint64_t base, end; /**< of the image with glibc's malloc; 0: there is none */
	uint32_t image;     /**< of it, in the region */
	bool has_odd_heaps; /**< arenas do not lie as they do by default */
	bool has_no_heap;   /**< the process has not begun: its loader has brought no allocator yet */
	char other[128];    /**< a library with an allocator of its own, whose blocks nobody knows; "" */
	struct heapwalk_thread *threads;
	uint32_t thread_count;
	struct heapwalk_heap *heaps;
	uint32_t heap_count;
	struct heapwalk_block *blocks; /**< that were in use some time between the attach and `ticks` */
	size_t count, capacity;
	uint64_t bytes; /**< of these */
	/** set by others when the recording ends: the reading then does, too; NULL: it is not told */
	const bool *is_ending;
	uint64_t began_ns, took_ns;
	uint64_t advanced_ns;                   /**< when it got on last */
	uint64_t began_cpu_ns, advanced_cpu_ns; /**< what its thread had had of a processor's time then */
	uint64_t begin_ticks;                   /**< reading began; calls that were under way at the attach were over */
	uint64_t ticks;    /**< calls that had begun before all blocks were read have returned by then */
	char missing[256]; /**< which blocks are not known, and why; "": all are */
};

/** Walk; the process is not touched, only read. Returns when there are no calls under way any more that began before it
    had read all. */
void heapwalk_run(struct heapwalk *walk, const struct region *region);

/** Do not. */
void heapwalk_skip(struct heapwalk *walk, const char *why);

/** What was found is not to be believed. */
void heapwalk_drop(struct heapwalk *walk, const char *why);
void heapwalk_fini(struct heapwalk *walk);

#endif
