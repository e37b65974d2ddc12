/* SPDX-License-Identifier: MIT */
/*
 * A heap is a chain of chunks from its start to its top. Only the chain and the lists of free chunks together show
 * which chunks are in use:
 *
 *     free in a bin       the next chunk says so
 *     free in a cache     the second word of the block is the caches' key, and a cache lists it: unconfirmed.c
 *     free in a fast bin  only the bin's list has it; lists are read before chains, so that a chunk that leaves a list
 *                         between is seen elsewhere
 *
 * The process runs all the time. So everything is read twice: what was the same both times was so at one moment between
 * (chunk_chains.c). A block that was allocated or freed since the attach has an event, which settles it.
 *
 * Two cases have no event: a call that has begun and not ended, and a free of bytes that were never allocated (the rest
 * of a block that shrinks). So everything is walked again when the calls of the first walk are over. A block counts if
 * both walks have found it.
 *
 * Each arena is walked by itself, up to where it reached when the reading began. Everything behind that has events, so
 * an arena that grows all the time is not chased. Arenas that could not be walked are tried again after the others, in
 * rounds, as long as any of them makes progress:
 *
 *     round 1    arena 0, arena 1, ..., blocks that are mapped alone        then wait for the calls that are under way
 *     round 2    those that were not walked twice yet                       ...
 */
#include "heapwalk/heapwalk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/order.h"
#include "heapwalk/chunk_chains.h"
#include "heapwalk/mapped_chunks.h"
#include "heapwalk/thread_caches.h"
#include "heapwalk/unconfirmed.h"
#include "os/clock.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "region/atomic.h"

enum {
	CHUNKS_MAX = READING_WINDOW_BYTES / GLIBC_CHUNK_MIN,
	WALKS = 2,
	CALLS_LIMIT_MS = 1000,
	CALL_CPU_NS = 5000000,
	ARENA_MAX = 1 << 16,
	HEAP_MAX = 1 << 20
};
/* The reading ends at the latest so long after it began. */
#define WALK_LIMIT_NS (120 * NS_PER_S)
#define SETTLE_LIMIT_NS (5 * NS_PER_S)
#define STOPPED_LIMIT_NS NS_PER_S

/* ---- waiting for calls ---- */

/* Wait until the heap calls that are under way now are over. */
static void calls_await(const struct region *region)
{
	uint64_t ticks = clock_event_ticks();
	for (int i = 0; i < CALLS_LIMIT_MS && reading_has_call(region, ticks); i++)
		monotonic_pause(1000000);
}

/* ---- arenas, as they are when the reading begins ---- */

/* A part of an arena that lies in one piece. */
struct arena_part {
	uint64_t base, start, end;
};

/* Blocks that were found at once, sorted. */
struct found_blocks {
	struct heapwalk_block *items;
	size_t count;
};

/* address 0: no arena, but the blocks that are mapped alone. */
struct walked_arena {
	uint64_t address;
	uint32_t heap;            /* in the walk's heaps; UINT32_MAX: no memory */
	struct arena_part *parts; /* NULL: they could not be read, or it has none yet */
	uint32_t part_count;
	struct found_blocks found[WALKS];
	unsigned walk_count;
};

struct arenas {
	struct walked_arena *items;
	uint32_t count;
};

static struct walked_arena *arena_add(struct arenas *arenas, const struct walked_arena *arena)
{
	struct walked_arena *larger = realloc(arenas->items, (arenas->count + 1) * sizeof(*larger));
	if (!larger)
		return NULL;
	arenas->items = larger;
	larger[arenas->count] = *arena;
	return &larger[arenas->count++];
}

static bool part_add(struct walked_arena *arena, const struct arena_part *part)
{
	struct arena_part *larger = realloc(arena->parts, (arena->part_count + 1) * sizeof(*larger));
	if (!larger)
		return false;
	arena->parts = larger;
	larger[arena->part_count++] = *part;
	return true;
}

static void arenas_fini(struct arenas *arenas)
{
	for (uint32_t i = 0; i < arenas->count; i++) {
		free(arenas->items[i].parts);
		for (int j = 0; j < WALKS; j++)
			free(arenas->items[i].found[j].items);
	}
	free(arenas->items);
}

/* Return the address of the first chunk in a heap of an arena. */
static uint64_t heap_start(const struct heap_reading *reading, uint64_t arena, uint64_t base)
{
	bool is_first = base == (arena & ~(uint64_t)(GLIBC_ARENA_ALIGNMENT - 1));
	return is_first ? (arena + glibc_arena_bytes(&reading->glibc) + 15) / 16 * 16
			: base + reading->glibc.layout->heap_bytes;
}

/* Read a heap of an arena. Return false if it is none. */
static bool heap_read(const struct heap_reading *reading, uint64_t arena, uint64_t base, struct glibc_heap *heap)
{
	const uint64_t mask = GLIBC_ARENA_ALIGNMENT - 1;
	return glibc_read(reading->walk->pid, base, heap, sizeof(*heap)) && heap->arena == arena &&
	       !(heap->before & mask) && heap->size <= mask + 1;
}

/* Note what there is of an arena, from the heap with the top back to the first one. */
static bool parts_read_once(const struct heap_reading *reading, struct walked_arena *arena)
{
	const uint64_t mask = GLIBC_ARENA_ALIGNMENT - 1;
	struct glibc_arena now;
	struct glibc_heap heap;
	arena->part_count = 0;
	if (!glibc_read(reading->walk->pid, arena->address, &now, sizeof(now)))
		return false;
	uint64_t top = glibc_top(&reading->glibc, &now);
	if (arena->address == reading->glibc.main_arena)
		return !reading->glibc.main_start ||
		       part_add(arena, &(struct arena_part){0, reading->glibc.main_start, top});
	if ((arena->address & mask) != reading->glibc.layout->heap_bytes)
		return false;
	for (uint64_t base = top & ~mask; base; base = heap.before) {
		if (arena->part_count == HEAP_MAX || !heap_read(reading, arena->address, base, &heap))
			return false;
		const struct arena_part part = {base, heap_start(reading, arena->address, base),
						arena->part_count ? base + heap.size : top};
		if (!part_add(arena, &part))
			return false;
	}
	return true;
}

static bool parts_read(const struct heap_reading *reading, struct walked_arena *arena)
{
	for (int i = 0; i < READING_TRIES; i++) {
		if (parts_read_once(reading, arena))
			return true;
		if (!reading_goes_on(reading))
			break;
	}
	arena->part_count = 0;
	return false;
}

/* List all present arenas. Return false if not all could be noted. */
static bool arenas_find(struct heap_reading *reading, struct arenas *arenas)
{
	uint64_t address = reading->glibc.main_arena;
	do {
		bool is_main = address == reading->glibc.main_arena;
		const struct walked_arena arena = {
			.address = address,
			.heap = found_heap_add(reading->walk, is_main ? reading->walk->base : address,
					       is_main ? HEAP_GLIBC_MAIN : HEAP_GLIBC_ARENA)};
		struct walked_arena *added = arena_add(arenas, &arena);
		if (!added)
			return false;
		if (!parts_read(reading, added))
			added->heap = UINT32_MAX;
		address = glibc_next_arena(&reading->glibc, reading->walk->pid, address);
	} while (arenas->count < ARENA_MAX && address && address != reading->glibc.main_arena);
	const struct walked_arena mapped = {
		.heap = found_heap_add(reading->walk, reading->walk->base, HEAP_GLIBC_MMAP)};
	return arena_add(arenas, &mapped) && address == reading->glibc.main_arena;
}

/* ---- walking arenas ---- */

static const struct arena_part *part_of(const struct walked_arena *arena, uint64_t base)
{
	for (uint32_t i = 0; i < arena->part_count; i++)
		if (arena->parts[i].base == base)
			return &arena->parts[i];
	return NULL;
}

/* Walk the noted heaps that still exist. A heap that is gone has no earlier block any more, and a new one has none
   either. */
static bool heaps_walk(struct heap_reading *reading, const struct walked_arena *arena)
{
	struct glibc_arena now;
	struct glibc_heap heap;
	unsigned count = 0;
	if (!glibc_read(reading->walk->pid, arena->address, &now, sizeof(now)))
		return false;
	for (uint64_t base = glibc_top(&reading->glibc, &now) & ~(uint64_t)(GLIBC_ARENA_ALIGNMENT - 1); base;
	     base = heap.before) {
		const struct arena_part *part = part_of(arena, base);
		if (count++ == HEAP_MAX || !heap_read(reading, arena->address, base, &heap))
			return false;
		if (part && !chunk_chain_walk(reading, &(struct chunk_chain){arena->address, base, part->start,
									     part->end, arena->heap}))
			return false;
	}
	return true;
}

/* Walk the main arena. An arena in several pieces, since the program moves the break itself, cannot be walked: its
   chain ends before its top. */
static bool main_walk(struct heap_reading *reading, const struct walked_arena *arena)
{
	return !arena->part_count ||
	       chunk_chain_walk(reading, &(struct chunk_chain){arena->address, 0, arena->parts[0].start,
							       arena->parts[0].end, arena->heap});
}

COMPARE_BY(block_compare, struct heapwalk_block, address)

/* Walk an arena; what is found is its own then. */
static bool arena_walk(struct heap_reading *reading, struct walked_arena *arena)
{
	struct heapwalk *walk = reading->walk;
	walk->count = walk->bytes = 0;
	if (arena->heap == UINT32_MAX)
		return false;
	bool is_walked = !arena->address
				 ? mapped_chunks_walk(reading, arena->heap)
				 : fast_bins_list(reading, arena->address) &&
					   (arena->address == reading->glibc.main_arena ? main_walk(reading, arena)
											: heaps_walk(reading, arena));
	if (!is_walked)
		return false;
	if (walk->count)
		qsort(walk->blocks, walk->count, sizeof(*walk->blocks), block_compare);
	arena->found[arena->walk_count++] = (struct found_blocks){walk->blocks, walk->count};
	walk->blocks = NULL;
	walk->count = walk->capacity = walk->bytes = 0;
	reading_has_advanced(reading);
	return true;
}

static bool can_be_walked(const struct walked_arena *arena, unsigned walks)
{
	return arena->heap != UINT32_MAX && arena->walk_count < walks;
}

/* Walk each arena this many times; before each repetition the calls of the time before must be over. Return whether all
   were walked. */
static bool arenas_walk(struct heap_reading *reading, struct arenas *arenas, unsigned walks)
{
	uint32_t left;
	reading_has_advanced(reading);
	for (;;) {
		left = 0;
		caches_renew(reading);
		for (uint32_t i = 0; i < arenas->count; i++)
			if (can_be_walked(&arenas->items[i], walks)) {
				arena_walk(reading, &arenas->items[i]);
				left += can_be_walked(&arenas->items[i], walks);
			}
		if (!left || !reading_goes_on(reading))
			break;
		calls_await(reading->region);
	}
	return !left;
}

/* Add the blocks that every walk of an arena has found. Return false without memory. */
static bool found_give(const struct walked_arena *arena, unsigned walks, struct heapwalk *walk)
{
	const struct found_blocks *first = &arena->found[0], *last = &arena->found[walks - 1];
	for (size_t i = 0, at = 0; i < last->count; i++) {
		const struct heapwalk_block *block = &last->items[i];
		while (at < first->count && first->items[at].address < block->address)
			at++;
		bool is_in_both = at < first->count && first->items[at].address == block->address &&
				  first->items[at].usable_bytes == block->usable_bytes;
		if (is_in_both && !found_block_add(walk, block->address, block->usable_bytes, block->heap))
			return false;
	}
	return true;
}

/* Put the blocks that were found into the walk, and note what is missing. */
static void arenas_give(const struct arenas *arenas, unsigned walks, struct heapwalk *walk)
{
	uint32_t missing = 0, count = arenas->count - 1;
	bool has_mapped = false, has_memory = true;
	walk->count = walk->bytes = 0;
	for (uint32_t i = 0; i < arenas->count; i++) {
		const struct walked_arena *arena = &arenas->items[i];
		bool is_whole = arena->walk_count == walks;
		has_memory &= !is_whole || found_give(arena, walks, walk);
		missing += arena->address && !is_whole;
		has_mapped |= !arena->address && is_whole;
	}
	char text[100];
	snprintf(text, sizeof(text), "%u of %u arenas could not be walked", missing, count);
	if (missing)
		found_missing_add(walk, text);
	if (!has_mapped)
		found_missing_add(walk, "blocks that are mapped alone were not found");
	if (!has_memory)
		found_missing_add(walk, "no memory for all of them");
}

/* ---- the whole walk ---- */

static void state_fini(struct heap_reading *reading)
{
	map_fini(&reading->listed);
	map_fini(&reading->keys);
	map_fini(&reading->caches);
	free(reading->first);
	free(reading->second);
	free(reading->offsets);
}

/* Settle the unconfirmed blocks: walk once more for those that seem to be cached but are not. */
static void unconfirmed_settle(struct heap_reading *reading, struct arenas *arenas)
{
	struct heapwalk *walk = reading->walk, other = *walk;
	struct unconfirmed unconfirmed;
	unconfirmed_take(reading, &unconfirmed);
	unconfirmed_watch(reading, &unconfirmed);
	if (unconfirmed.count) {
		for (uint32_t i = 0; i < arenas->count; i++) {
			/* Walk the arenas once more that were walked. */
			struct walked_arena *arena = &arenas->items[i];
			arena->heap = arena->walk_count == WALKS ? arena->heap : UINT32_MAX;
			arena->walk_count = 0;
			free(arena->found[0].items);
			arena->found[0] = (struct found_blocks){NULL, 0};
		}
		other.blocks = NULL;
		other.count = other.capacity = other.bytes = 0;
		reading->walk = &other;
		if (!arenas_walk(reading, arenas, 1))
			found_missing_add(walk, UNCONFIRMED_LEFT);
		arenas_give(arenas, 1, &other);
		qsort(other.blocks, other.count, sizeof(*other.blocks), block_compare);
		reading->walk = walk;
		reading_has_advanced(reading);
		unconfirmed_confirm(&unconfirmed, &other);
		unconfirmed_drop_changed(reading, &unconfirmed);
		free(other.blocks);
	}
	unconfirmed_return(&unconfirmed, walk);
}

static void walk_twice(struct heap_reading *reading)
{
	struct heapwalk *walk = reading->walk;
	struct arenas arenas = {NULL, 0};
	if (!arenas_find(reading, &arenas)) {
		found_missing_add(walk, "malloc's arenas could not be listed");
	} else {
		arenas_walk(reading, &arenas, WALKS);
		arenas_give(&arenas, WALKS, walk);
		if (!caches_drop(reading))
			heapwalk_drop(walk, CACHES_MISSING);
		unconfirmed_settle(reading, &arenas);
		qsort(walk->blocks, walk->count, sizeof(*walk->blocks), block_compare);
	}
	arenas_fini(&arenas);
}

/* Return why the heaps cannot be walked; NULL: they can. */
static const char *cannot_walk(struct heap_reading *reading, struct diag *diag)
{
	const struct heapwalk *walk = reading->walk;
	const struct glibc *glibc = &reading->glibc;
	if (!reading->first || !reading->second || !reading->offsets)
		return "no memory to walk its heaps";
	if (walk->has_odd_heaps)
		return "GLIBC_TUNABLES changes where its arenas lie";
	if (glibc_find(&reading->glibc, walk->pid, walk->base, walk->end, diag) != 0)
		return diag->text;
	if (glibc->is_unused)
		return NULL;
	if (!glibc->main_arena || !glibc->mapped)
		return "malloc's arenas were not found";
	return caches_find(reading) ? NULL : CACHES_MISSING;
}

static void glibc_walk(struct heapwalk *walk, const struct region *region)
{
	struct heap_reading reading = {.walk = walk,
				       .region = region,
				       .first = malloc(READING_WINDOW_BYTES),
				       .second = malloc(READING_WINDOW_BYTES),
				       .offsets = malloc((CHUNKS_MAX + 2) * sizeof(uint32_t)),
				       .is_single_threaded = proc_status_value(walk->pid, "Threads") == 1,
				       .until_ns = walk->began_ns + WALK_LIMIT_NS};
	reading_has_advanced(&reading);
	struct diag diag = {""};
	const char *why = cannot_walk(&reading, &diag);
	if (why)
		found_missing_add(walk, why);
	else if (!reading.glibc.is_unused)
		walk_twice(&reading);
	state_fini(&reading);
}

/* ---- calls that were under way at the attach ---- */

static bool thread_file(const struct heapwalk *walk, pid_t tid, const char *name, char *text, size_t size)
{
	return *proc_read_small(proc_path(walk->pid, "task/%d/%s", (int)tid, name).text, text, size);
}

/* Return whether malloc makes such a system call: for memory, or to wait for an arena. */
static bool is_malloc_call(const struct heapwalk *walk, long number, uint64_t first)
{
	static const long numbers[] = {SYS_mmap, SYS_munmap, SYS_brk, SYS_mprotect, SYS_mremap, SYS_madvise};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (number == numbers[i])
			return true;
	return number == SYS_futex &&
	       ((first >= walk->base && first < walk->end) || first % GLIBC_ARENA_ALIGNMENT <= GLIBC_HEAP_MOST);
}

/* Return whether the thread has left its call: it has called the heap since, has worked for longer than a call takes,
   or waits for something else. */
static bool is_settled(const struct heapwalk *walk, const struct region *region, struct heapwalk_thread *thread)
{
	char text[256];
	long number;
	unsigned long long first, cpu_ns;
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++)
		if (LOAD(&region_slot(region, i)->fs_base) == thread->pointer)
			return true;
	if (!thread_file(walk, thread->tid, "syscall", text, sizeof(text)))
		return true;
	/* One that was stopped, or waits for a page, is in no system call (-1), and may be anywhere. */
	if (sscanf(text, "%ld 0x%llx", &number, &first) == 2 && number >= 0 && !is_malloc_call(walk, number, first))
		return true;
	if (!thread_file(walk, thread->tid, "schedstat", text, sizeof(text)) || sscanf(text, "%llu", &cpu_ns) != 1)
		return false;
	if (!thread->cpu_ns)
		thread->cpu_ns = cpu_ns;
	return cpu_ns - thread->cpu_ns > CALL_CPU_NS;
}

/* Return the time to wait for calls: less for a stopped process than for one whose threads wait for a processor. */
static uint64_t settle_limit_ns(pid_t pid)
{
	char state = proc_state(pid);
	return state == 'T' || state == 't' ? STOPPED_LIMIT_NS : SETTLE_LIMIT_NS;
}

/* Return the number of threads whose call at the attach may still be under way. Calls that were under way when the
   entries were patched have no event. They must be over, or a block that they free would count as used. */
static uint32_t threads_settle(struct heapwalk *walk, const struct region *region)
{
	uint32_t settled = 0;
	for (int i = 0; settled < walk->thread_count &&
			monotonic_now_ns() - walk->began_ns < settle_limit_ns(walk->pid) && !reading_is_over(walk);
	     i++) {
		if (i)
			monotonic_pause(1000000);
		settled = 0;
		for (uint32_t j = 0; j < walk->thread_count; j++) {
			struct heapwalk_thread *thread = &walk->threads[j];
			thread->is_settled = thread->is_settled || is_settled(walk, region, thread);
			settled += thread->is_settled;
		}
	}
	return walk->thread_count - settled;
}

void heapwalk_run(struct heapwalk *walk, const struct region *region)
{
	char text[200];
	reading_begin(walk);
	uint32_t unsettled = threads_settle(walk, region);
	walk->begin_ticks = clock_event_ticks();
	if (walk->base)
		glibc_walk(walk, region);
	if (unsettled) {
		snprintf(text, sizeof(text), "%u thread%s may have been in heap calls all the time", unsettled,
			 unsettled == 1 ? "" : "s");
		found_missing_add(walk, text);
	}
	if (!walk->has_no_heap && (walk->other[0] || !walk->base)) {
		snprintf(text, sizeof(text), "%s has its own heap, which cannot be walked",
			 walk->other[0] ? walk->other : "the program");
		found_missing_add(walk, text);
	}
	calls_await(region);
	walk->ticks = clock_event_ticks();
	walk->took_ns = monotonic_now_ns() - walk->began_ns;
	if (walk->missing[0] && reading_is_gone(walk->pid))
		snprintf(walk->missing, sizeof(walk->missing), "it ended before its heaps were read");
}

void heapwalk_skip(struct heapwalk *walk, const char *why)
{
	found_missing_add(walk, why);
}

void heapwalk_drop(struct heapwalk *walk, const char *why)
{
	walk->count = walk->bytes = 0;
	snprintf(walk->missing, sizeof(walk->missing), "%s", why);
}

void heapwalk_fini(struct heapwalk *walk)
{
	free(walk->threads);
	free(walk->heaps);
	free(walk->blocks);
	*walk = (struct heapwalk){0};
}
