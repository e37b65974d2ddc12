/* SPDX-License-Identifier: MIT */
#include "heapwalk/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "os/monotonic.h"
#include "os/proc.h"

enum { PAUSE_NS = 50000, BLOCK_MAX = 1 << 26 };
/* The reading ends after STUCK_LIMIT_NS without progress. */
#define STUCK_LIMIT_NS (5 * NS_PER_S)
/* When the recording ends, the reading still gets one second of processor time. On a busy machine it waits for that
   second for 30 seconds at most. */
#define READING_LEAST_NS NS_PER_S
#define READING_LEAST_MOST_NS (30 * NS_PER_S)
/* Processor time without progress after which the reading ends with the recording. */
#define STUCK_CPU_NS (200 * NS_PER_MS)

/* ---- deadlines ---- */

bool reading_is_gone(pid_t pid)
{
	return proc_has_ended(pid) || !proc_state(pid);
}

/* Return the processor time of this thread. */
static uint64_t cpu_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

bool reading_is_over(const struct heapwalk *walk)
{
	if (!walk->is_ending || !__atomic_load_n(walk->is_ending, __ATOMIC_ACQUIRE))
		return false;
	uint64_t took_ns = monotonic_now_ns() - walk->began_ns, now_cpu_ns = cpu_ns();
	bool has_had_all = now_cpu_ns - walk->began_cpu_ns >= READING_LEAST_NS,
	     is_stuck = now_cpu_ns - walk->advanced_cpu_ns >= STUCK_CPU_NS;
	return took_ns >= READING_LEAST_MOST_NS || (took_ns >= READING_LEAST_NS && (has_had_all || is_stuck));
}

void reading_begin(struct heapwalk *walk)
{
	walk->began_ns = monotonic_now_ns();
	walk->began_cpu_ns = walk->advanced_cpu_ns = cpu_ns();
}

bool reading_is_late(const struct heap_reading *reading)
{
	uint64_t now_ns = monotonic_now_ns();
	return now_ns >= reading->until_ns || now_ns - reading->walk->advanced_ns >= STUCK_LIMIT_NS ||
	       reading_is_over(reading->walk);
}

void reading_has_advanced(struct heap_reading *reading)
{
	reading->walk->advanced_ns = monotonic_now_ns();
	reading->walk->advanced_cpu_ns = cpu_ns();
}

bool reading_goes_on(const struct heap_reading *reading)
{
	monotonic_pause(PAUSE_NS);
	return !reading_is_late(reading) && !reading_is_gone(reading->walk->pid);
}

/* ---- results ---- */

void found_missing_add(struct heapwalk *walk, const char *text)
{
	size_t length = strlen(walk->missing);
	snprintf(walk->missing + length, sizeof(walk->missing) - length, "%s%s", length ? "; " : "", text);
}

uint32_t found_heap_add(struct heapwalk *walk, uint64_t handle, uint16_t kind)
{
	struct heapwalk_heap *larger = realloc(walk->heaps, (walk->heap_count + 1) * sizeof(*larger));
	if (!larger)
		return UINT32_MAX;
	walk->heaps = larger;
	walk->heaps[walk->heap_count] = (struct heapwalk_heap){handle, kind};
	return walk->heap_count++;
}

bool found_block_add(struct heapwalk *walk, uint64_t address, uint64_t usable_bytes, uint32_t heap)
{
	if (walk->count >= BLOCK_MAX || !grow_by_one(walk->blocks, walk->count, walk->capacity))
		return false;
	walk->blocks[walk->count++] = (struct heapwalk_block){address, usable_bytes, heap};
	walk->bytes += usable_bytes;
	return true;
}

void found_blocks_drop(struct heapwalk *walk, size_t count)
{
	while (walk->count > count)
		walk->bytes -= walk->blocks[--walk->count].usable_bytes;
}

/* ---- calls under way, cached blocks ---- */

bool reading_has_call(const struct region *region, uint64_t before_ticks)
{
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++) {
		const struct region_slot *slot = region_slot(region, i);
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SLOT_LIVE &&
		    __atomic_load_n(&slot->call_entry, __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&slot->call_ticks, __ATOMIC_RELAXED) < before_ticks)
			return true;
	}
	return false;
}

bool reading_has_key(const struct heap_reading *reading, uint64_t key)
{
	return map_find(reading->glibc.layout->has_random_key ? &reading->keys : &reading->caches, key);
}
