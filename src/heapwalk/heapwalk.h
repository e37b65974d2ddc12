/* SPDX-License-Identifier: MIT */
/** The walk over the blocks of glibc's malloc that existed before a process was attached to. It reads them while the
    process's threads run and pauses none. docs/decisions/012-earlier-blocks.md and 024-reading-growing-heaps.md say
    when a found chunk counts as a block, and what is a guess. */
#ifndef XHEAP_HEAPWALK_HEAPWALK_H
#define XHEAP_HEAPWALK_HEAPWALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "region/region.h"

/** The heap of a block, in the terms of struct region_heap. */
struct heapwalk_heap {
	uint64_t handle;
	uint16_t kind;
};

/** A found block. heap: index in heapwalk.heaps. */
struct heapwalk_block {
	uint64_t address, usable_bytes;
	uint32_t heap;
};

/** A thread that existed at the attach. */
struct heapwalk_thread {
	pid_t tid;
	uint64_t pointer; /**< its thread pointer */
	uint64_t cpu_ns;  /**< at the first check; 0: not checked yet */
	bool is_settled;  /**< the heap call that it may have been in has returned */
};

/** A walk. inject_attach() fills the first part, heapwalk_run() the rest. */
struct heapwalk {
	pid_t pid;
	uint64_t base, end; /**< of the image with glibc's malloc; 0: there is none */
	uint32_t file;      /**< index of that image's file in the region */
	bool has_odd_heaps; /**< arenas do not lie as they do by default */
	bool has_no_heap;   /**< the process has not begun: its loader has mapped no allocator yet */
	char other[128];    /**< a library with an allocator of its own, whose blocks are unknown; "" */
	struct heapwalk_thread *threads;
	uint32_t thread_count;
	struct heapwalk_heap *heaps;
	uint32_t heap_count;
	struct heapwalk_block *blocks; /**< blocks that were in use at some time between the attach and `ticks` */
	size_t count, capacity;
	uint64_t bytes; /**< sum of their usable bytes */
	/** set by the logger's main thread when the recording ends: the walk then ends soon; NULL: no such flag */
	const bool *is_ending;
	uint64_t began_ns, took_ns;
	uint64_t advanced_ns;                   /**< when the walk last made progress */
	uint64_t began_cpu_ns, advanced_cpu_ns; /**< CPU time of the walking thread at these two moments */
	/** when reading began; calls that were under way at the attach had returned */
	uint64_t begin_ticks;
	uint64_t ticks;    /**< by then, all calls that had begun before the end of reading have returned */
	char missing[256]; /**< which blocks are unknown, and why; "": none */
};

/** Run the walk: only read the process. Return once all calls have returned that began before everything was read. */
void heapwalk_run(struct heapwalk *walk, const struct region *region);

/** Skip the walk; `why` goes to walk->missing. */
void heapwalk_skip(struct heapwalk *walk, const char *why);

/** Drop all found blocks as unreliable; `why` replaces walk->missing. */
void heapwalk_drop(struct heapwalk *walk, const char *why);
/** Free the arrays. */
void heapwalk_fini(struct heapwalk *walk);

#endif
