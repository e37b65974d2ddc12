/* SPDX-License-Identifier: MIT */
/*
 * A heap is a chain of chunks from its start to its top. Which of them are in use, only the chain and the lists of free ones tell together:
 *
 *     free in a bin      the next chunk says so
 *     free in a cache    the second word of the block is the caches' key
 *     free in a fast bin only the bin's list has it: lists are read before chains, so that what leaves one meanwhile is seen elsewhere
 *
 * The process runs on meanwhile. So what is read is read twice: what was the same both times was so at one moment between. Whatever was given out
 * or back since the attach has an event, which settles it. What is neither, since a call has begun with it and is not through, or frees what it
 * never gave out (the rest of a block that shrinks), has none: so all is walked again when the calls of the first time are over, and a block is
 * one that was there both times.
 *
 * A fast bin is a stack. What lay in it at the attach, and still does, is its lower end, to which any reading leads that is not led astray by
 * what is taken from its top meanwhile. To list a chunk that is none is harmless: it has events.
 */
#include "inject/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "inject/glibc.h"
#include "inject/inject.h"
#include "os/proc.h"

enum {
	WINDOW_BYTES = 64 << 10, CHUNKS_MAX = WINDOW_BYTES / GLIBC_CHUNK_MIN, PAGE = 4096,
	READ_TRIES = 200, CALM_TRIES = 8, WALK_TRIES = 5, LIST_TRIES = 50, LIST_READINGS = 3, PASSES = 4, PAUSE_NS = 50000, CALLS_LIMIT_MS = 1000, CALL_CPU_NS = 1000000, WALK_LIMIT_MS = 20000,
	LIST_MAX = 1 << 24, ARENA_MAX = 1 << 16, HEAP_MAX = 1 << 20,
	THREAD_SCAN_BYTES = 64 << 10, SAMPLES_MAX = 256, PAGES = 512
};

/* A chain of chunks. */
struct chain {
	uint64_t arena, start, limit; /* limit: nothing of it lies from here on */
	bool has_top;                 /* it ends with the arena's top chunk; else with a fence */
	uint32_t heap;                /* in the walk's heaps */
};

struct found { uint64_t chunk, word, key; };

struct state {
	struct walk *walk;
	const struct region *region;
	struct glibc glibc;
	bool is_alone;                /* one thread, which takes no locks */
	struct map listed;            /* chunks in fast bins */
	struct map keys;              /* marks of cached blocks */
	struct map caches;            /* the caches themselves, which are blocks of nobody's */
	int64_t cache_offset;         /* where a thread names its own, from its pointer */
	uint64_t until_ns;            /* later it is given up */
	uint8_t *first, *second;      /* a window, read twice */
	uint32_t *offsets;            /* of its chunks */
};

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void pause_ns(long nanoseconds)
{
	struct timespec time = {0, nanoseconds};
	nanosleep(&time, NULL);
}

static bool is_gone(pid_t pid)
{
	return proc_has_ended(pid) || !proc_state(pid);
}

/* Whether to try again, after a pause: not for ever, and not a process that is gone. */
static bool goes_on(const struct state *state)
{
	pause_ns(PAUSE_NS);
	return now_ns() < state->until_ns && !is_gone(state->walk->pid);
}

/* ---- results ---- */

static void missing_add(struct walk *walk, const char *text)
{
	size_t length = strlen(walk->missing);
	snprintf(walk->missing + length, sizeof(walk->missing) - length, "%s%s", length ? "; " : "", text);
}

static uint32_t heap_add(struct walk *walk, uint64_t handle, uint16_t kind)
{
	struct walk_heap *larger = realloc(walk->heaps, (walk->heap_count + 1) * sizeof(*larger));
	if (!larger)
		return UINT32_MAX;
	walk->heaps = larger;
	walk->heaps[walk->heap_count] = (struct walk_heap){handle, kind};
	return walk->heap_count++;
}

static bool block_add(struct walk *walk, uint64_t address, uint64_t usable_bytes, uint32_t heap)
{
	if (walk->count == walk->capacity) {
		size_t capacity = walk->capacity ? walk->capacity * 2 : 4096;
		struct walk_block *larger = realloc(walk->blocks, capacity * sizeof(*larger));
		if (!larger)
			return false;
		walk->blocks = larger;
		walk->capacity = capacity;
	}
	walk->blocks[walk->count++] = (struct walk_block){address, usable_bytes, heap};
	walk->bytes += usable_bytes;
	return true;
}

static void blocks_drop(struct walk *walk, size_t count)
{
	while (walk->count > count)
		walk->bytes -= walk->blocks[--walk->count].usable_bytes;
}

/* ---- whether anybody is at work ---- */

/* A thread is in a heap call that it began before these ticks. */
static bool has_call(const struct region *region, uint64_t before_ticks)
{
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++) {
		const struct region_slot *slot = region_slot(region, i);
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SLOT_LIVE && __atomic_load_n(&slot->call_entry, __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&slot->call_ticks, __ATOMIC_RELAXED) < before_ticks)
			return true;
	}
	return false;
}

/* Wait until the heap calls that are under way now are over. */
static void calls_await(const struct region *region)
{
	uint64_t ticks = inject_ticks();
	for (int i = 0; i < CALLS_LIMIT_MS && has_call(region, ticks); i++)
		pause_ns(1000000);
}

/* A single thread takes no lock: it says itself whether it is in a call. */
static bool is_calm(const struct state *state, const struct glibc_arena *arena)
{
	return arena->mutex == 0 && !(state->is_alone && has_call(state->region, UINT64_MAX));
}

/* ---- caches ---- */

/* Where the main thread's cache, which is the first chunk of all, is named beneath a thread's pointer; 0: nowhere. */
static int64_t cache_offset(const struct state *state)
{
	const struct walk *walk = state->walk;
	uint64_t block = state->glibc.main_start + 16, words[PAGE / sizeof(uint64_t)];
	for (uint32_t i = 0; i < walk->thread_count; i++) {
		uint64_t high = walk->threads[i].pointer & ~7ull, lowest = high - THREAD_SCAN_BYTES;
		/* Page by page: any of them may be the first one that is there. */
		for (uint64_t low; high > lowest; high = low) {
			low = (high - 1) & ~(uint64_t)(PAGE - 1);
			if (!glibc_read(walk->pid, low, words, high - low))
				break;
			for (uint64_t at = low; at < high; at += sizeof(*words))
				if (words[(at - low) / sizeof(*words)] == block)
					return (int64_t)(at - walk->threads[i].pointer);
		}
	}
	return 0;
}

/* The cache of a thread that still is. False: what is there is none. */
static bool cache_read(struct state *state, uint64_t thread_pointer)
{
	uint64_t cache, word;
	bool added;
	if (!glibc_read(state->walk->pid, thread_pointer + (uint64_t)state->cache_offset, &cache, sizeof(cache)) || !cache)
		return true;
	if ((cache & 15) || !glibc_read(state->walk->pid, cache - 8, &word, sizeof(word)) || (word & ~(uint64_t)GLIBC_BITS) != GLIBC_CACHE_CHUNK)
		return false;
	map_add(&state->caches, cache, &added);
	return true;
}

static bool caches_read(struct state *state)
{
	for (uint32_t i = 0; i < state->walk->thread_count; i++)
		if (!cache_read(state, state->walk->threads[i].pointer))
			return false;
	return true;
}

/* Threads that have come since have theirs, too: they called the heap, and so have slots. What of them is no cache is none. */
static void caches_read_again(struct state *state)
{
	const struct region *region = state->region;
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	caches_read(state);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++)
		if (region_slot(region, i)->fs_base)
			cache_read(state, region_slot(region, i)->fs_base);
}

static void caches_drop(struct walk *walk, const struct map *caches)
{
	size_t kept = 0;
	for (size_t i = 0; i < walk->count; i++) {
		const struct walk_block block = walk->blocks[i];
		if (block.usable_bytes == GLIBC_CACHE_CHUNK - 8 && map_find(caches, block.address))
			walk->bytes -= block.usable_bytes;
		else
			walk->blocks[kept++] = block;
	}
	walk->count = kept;
}

/* The key that most of the cached blocks have; 0: none is cached, or they disagree since they are being taken out. */
static uint64_t key_read(const struct state *state, bool *is_certain)
{
	const struct map *caches = &state->caches;
	uint64_t samples[SAMPLES_MAX], best = 0;
	uint32_t count = 0, most = 0;
	struct glibc_cache cache;
	for (uint32_t i = 0; caches->cells && i < 1u << caches->bits && count < SAMPLES_MAX; i++) {
		if (!caches->cells[i].used || !glibc_read(state->walk->pid, caches->cells[i].key, &cache, sizeof(cache)))
			continue;
		for (int bin = 0; bin < GLIBC_BIN_COUNT && count < SAMPLES_MAX; bin++)
			if (cache.count[bin] && glibc_read(state->walk->pid, cache.first[bin] + 8, &samples[count], sizeof(*samples)))
				count++;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t alike = 0;
		for (uint32_t j = 0; j < count; j++)
			alike += samples[j] == samples[i];
		if (alike > most) {
			most = alike;
			best = samples[i];
		}
	}
	*is_certain = count == 0 || (best && most * 2 > count);
	return best;
}

static bool caches_find(struct state *state)
{
	struct glibc_chunk first;
	bool is_certain = false, added;
	if (!glibc_read(state->walk->pid, state->glibc.main_start, &first, sizeof(first)) ||
	    (first.word & ~(uint64_t)GLIBC_BITS) != GLIBC_CACHE_CHUNK)
		return false;
	state->cache_offset = cache_offset(state);
	if (!state->cache_offset || !caches_read(state))
		return false;
	if (!state->glibc.layout->has_random_key)
		return true;
	for (int i = 0; i < READ_TRIES && !is_certain; i++) {
		uint64_t key = key_read(state, &is_certain);
		if (is_certain && key)
			map_add(&state->keys, key, &added);
		if (!is_certain && !goes_on(state))
			return false;
	}
	return is_certain;
}

static bool is_cached(const struct state *state, uint64_t key)
{
	return map_find(state->glibc.layout->has_random_key ? &state->keys : &state->caches, key);
}

/* ---- fast bins ---- */

struct list { uint64_t *chunks, *links; size_t count, capacity; };

static bool list_add(struct list *list, uint64_t chunk, uint64_t link)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 256;
		uint64_t *chunks = realloc(list->chunks, capacity * sizeof(*chunks));
		if (chunks)
			list->chunks = chunks;
		uint64_t *links = realloc(list->links, capacity * sizeof(*links));
		if (links)
			list->links = links;
		if (!chunks || !links)
			return false;
		list->capacity = capacity;
	}
	list->chunks[list->count] = chunk;
	list->links[list->count++] = link;
	return true;
}

/* The head of a chunk, which is likely to lie in the page of the one before: that is kept in the first window. */
static bool list_read(const struct state *state, uint64_t *page, uint64_t chunk, struct glibc_chunk *head)
{
	uint64_t offset = chunk % PAGE;
	if (offset + sizeof(*head) > PAGE)
		return glibc_read(state->walk->pid, chunk, head, sizeof(*head));
	if (*page != chunk - offset && !glibc_read(state->walk->pid, *page = chunk - offset, state->first, PAGE)) {
		*page = 0;
		return false;
	}
	memcpy(head, state->first + offset, sizeof(*head));
	return true;
}

/* Follow a fast bin to its end. False: it does not lead there now. */
static bool list_follow(const struct state *state, struct list *list, uint64_t chunk, unsigned bin)
{
	uint64_t page = 0;
	while (chunk) {
		struct glibc_chunk head;
		if ((chunk & 15) || list->count >= LIST_MAX || !list_read(state, &page, chunk, &head) ||
		    (head.word & ~(uint64_t)GLIBC_BITS) != (bin + 2) * 16 || !list_add(list, chunk, head.user[0]))
			return false;
		chunk = state->glibc.layout->is_mangled ? (chunk + 16) >> 12 ^ head.user[0] : head.user[0];
	}
	return true;
}

/* Whether all links are still as they were read. */
static bool list_holds(const struct state *state, const struct list *list)
{
	enum { SOME = 512 };
	struct glibc_piece pieces[SOME];
	uint64_t links[SOME];
	for (size_t done = 0; done < list->count; done += SOME) {
		size_t some = list->count - done < SOME ? list->count - done : SOME;
		for (size_t i = 0; i < some; i++)
			pieces[i] = (struct glibc_piece){list->chunks[done + i] + 16, &links[i], sizeof(*links)};
		if (!glibc_read_pieces(state->walk->pid, pieces, some) || memcmp(links, list->links + done, some * sizeof(*links)) != 0)
			return false;
	}
	return true;
}

/* One reading of the arena's fast bins to their ends. *holds: nothing of them has changed meanwhile. */
static bool lists_read_once(const struct state *state, uint64_t address, struct list *list, bool *holds)
{
	struct glibc_arena before, after;
	list->count = 0;
	if (!glibc_read(state->walk->pid, address, &before, sizeof(before)))
		return false;
	for (unsigned bin = 0; bin < GLIBC_FAST_COUNT; bin++)
		if (!list_follow(state, list, before.fast[bin], bin))
			return false;
	*holds = list_holds(state, list) && glibc_read(state->walk->pid, address, &after, sizeof(after)) &&
		 memcmp(before.fast, after.fast, sizeof(before.fast)) == 0;
	return true;
}

/* One reading is enough if nothing changed; else several, which are not all led astray. */
static bool lists_read(struct state *state, uint64_t arena)
{
	struct list list = {0};
	int readings = 0;
	for (int i = 0; i < LIST_TRIES && readings < LIST_READINGS; i++) {
		bool holds = false, added;
		if (lists_read_once(state, arena, &list, &holds)) {
			readings += holds ? LIST_READINGS : 1;
			for (size_t j = 0; j < list.count; j++)
				map_add(&state->listed, list.chunks[j], &added);
		}
		if (readings < LIST_READINGS && !goes_on(state))
			break;
	}
	free(list.chunks);
	free(list.links);
	return readings >= LIST_READINGS;
}

/* ---- chains ---- */

/* Where a window begins, and the chunk before it, of which is not known yet whether it is in use. */
struct place { uint64_t at; struct found before; };

enum outcome { GOES_ON, AT_END, BROKEN };

static bool found_add(struct state *state, const struct chain *chain, const struct found *found)
{
	if (is_cached(state, found->key) || map_find(&state->listed, found->chunk))
		return true;
	return block_add(state->walk, found->chunk + 16, (found->word & ~(uint64_t)GLIBC_BITS) - 8, chain->heap);
}

static struct glibc_chunk chunk_at(const uint8_t *window, uint64_t offset, uint64_t size)
{
	struct glibc_chunk chunk = {0};
	memcpy(&chunk, window + offset, size - offset < sizeof(chunk) ? size - offset : sizeof(chunk));
	return chunk;
}

/* Follow the chain through the window of `size` bytes, noting where chunks are. *next: where it leads. */
static enum outcome window_follow(struct state *state, const struct chain *chain, const struct place *place, uint64_t limit, uint64_t size,
				  uint32_t *count, uint64_t *next)
{
	uint64_t at = place->at, before = place->before.word & ~(uint64_t)GLIBC_BITS;
	bool is_before_mine = !place->before.chunk || !(place->before.word & GLIBC_NON_MAIN) == (chain->arena == state->glibc.main_arena);
	for (*count = 0;; (*count)++) {
		uint64_t offset = at - place->at;
		*next = at;
		if (offset + GLIBC_FENCE > size)
			return at < limit ? GOES_ON : BROKEN;
		struct glibc_chunk chunk = chunk_at(state->first, offset, size);
		uint64_t bytes = chunk.word & ~(uint64_t)GLIBC_BITS;
		bool is_end = chain->has_top ? at == limit - GLIBC_FENCE : bytes == GLIBC_FENCE;
		/* What is free has its size behind it; what is in use, the arena's mark. */
		if (before && !(chunk.word & GLIBC_BEFORE_IN_USE ? is_before_mine : chunk.size_before == before))
			return BROKEN;
		if (!is_end && offset + sizeof(chunk) > size && at + sizeof(chunk) <= limit)
			return GOES_ON;
		if (!is_end && (bytes < GLIBC_CHUNK_MIN || (bytes & 15) || (chunk.word & GLIBC_MAPPED) || bytes > limit - at))
			return BROKEN;
		state->offsets[*count] = (uint32_t)offset;
		if (is_end) {
			(*count)++;
			return AT_END;
		}
		is_before_mine = !(chunk.word & GLIBC_NON_MAIN) == (chain->arena == state->glibc.main_arena);
		before = bytes;
		at += bytes;
	}
}

/* Whether the chunks of the window had the same sizes both times. */
static bool window_holds(const struct state *state, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (memcmp(state->first + state->offsets[i] + 8, state->second + state->offsets[i] + 8, 8) != 0)
			return false;
	return true;
}

/* Take the chunks that are in use. False: no memory. */
static bool window_take(struct state *state, const struct chain *chain, struct place *place, uint64_t size, uint32_t count, uint64_t next)
{
	for (uint32_t i = 0; i < count; i++) {
		struct glibc_chunk chunk = chunk_at(state->second, state->offsets[i], size);
		if (place->before.chunk && (chunk.word & GLIBC_BEFORE_IN_USE) && !found_add(state, chain, &place->before))
			return false;
		place->before = (struct found){place->at + state->offsets[i], chunk.word, chunk.user[1]};
	}
	place->at = next;
	return true;
}

/* One window: read twice, with the arena before and after; at best while nobody is at work on that. */
static enum outcome window_walk(struct state *state, const struct chain *chain, struct place *place, bool has_to_be_calm)
{
	struct glibc_arena arena[2];
	pid_t pid = state->walk->pid;
	if (!glibc_read(pid, chain->arena, &arena[0], sizeof(arena[0])) || (has_to_be_calm && !is_calm(state, &arena[0])))
		return BROKEN;
	uint64_t limit = chain->has_top ? arena[0].top + GLIBC_FENCE : chain->limit, left = limit - place->at, next;
	if (place->at > limit - GLIBC_FENCE || limit > chain->limit)
		return BROKEN;
	uint64_t size = left < WINDOW_BYTES ? left : WINDOW_BYTES;
	const struct glibc_piece pieces[] = {{place->at, state->first, size}, {place->at, state->second, size},
					     {chain->arena, &arena[1], sizeof(arena[1])}};
	uint32_t count;
	if (!glibc_read_pieces(pid, pieces, 3) || (has_to_be_calm && !is_calm(state, &arena[1])) || arena[0].top != arena[1].top)
		return BROKEN;
	enum outcome outcome = window_follow(state, chain, place, limit, size, &count, &next);
	if (outcome == BROKEN || !window_holds(state, count) || !window_take(state, chain, place, size, count, next))
		return BROKEN;
	return outcome;
}

static bool chain_walk_once(struct state *state, const struct chain *chain)
{
	struct place place = {.at = chain->start};
	enum outcome outcome = GOES_ON;
	int tries = 0;
	while (outcome != AT_END && tries < READ_TRIES) {
		outcome = window_walk(state, chain, &place, tries < CALM_TRIES);
		tries = outcome == BROKEN ? tries + 1 : 0;
		if (outcome == BROKEN && !goes_on(state))
			break;
	}
	return outcome == AT_END;
}

static bool chain_walk(struct state *state, const struct chain *chain)
{
	size_t count = state->walk->count;
	for (int i = 0; i < WALK_TRIES; i++) {
		if (chain_walk_once(state, chain))
			return true;
		blocks_drop(state->walk, count);
		if (!goes_on(state))
			break;
	}
	return false;
}

/* ---- arenas ---- */

/* The main arena lies in one piece as a rule: else its chain ends before its top. */
static bool main_walk(struct state *state, uint32_t heap)
{
	const struct chain chain = {.arena = state->glibc.main_arena, .start = state->glibc.main_start, .limit = UINT64_MAX >> 1, .has_top = true, .heap = heap};
	return chain_walk(state, &chain);
}

/* From the heap with the top back to the first one. */
static bool heaps_walk(struct state *state, uint64_t arena, uint32_t heap)
{
	const uint64_t mask = GLIBC_ARENA_ALIGNMENT - 1, head = state->glibc.layout->heap_bytes;
	const uint64_t first = (arena + 2200 + 15) / 16 * 16;
	struct glibc_arena now;
	struct glibc_heap info;
	if ((arena & mask) != head || !glibc_read(state->walk->pid, arena, &now, sizeof(now)))
		return false;
	bool has_top = true;
	unsigned count = 0;
	for (uint64_t at = now.top & ~mask; at; at = info.before, has_top = false) {
		if (count++ == HEAP_MAX || !glibc_read(state->walk->pid, at, &info, sizeof(info)) || info.arena != arena || (info.before & mask) ||
		    info.size > mask + 1)
			return false;
		const struct chain chain = {.arena = arena, .start = at == (arena & ~mask) ? first : at + head, .limit = at + info.size, .has_top = has_top,
					    .heap = heap};
		if (!chain_walk(state, &chain))
			return false;
	}
	return true;
}

/* An arena that gets another heap meanwhile is walked again. */
static bool arena_walk(struct state *state, uint64_t arena)
{
	bool is_main = arena == state->glibc.main_arena;
	struct walk *walk = state->walk;
	uint32_t heap = is_main ? heap_add(walk, walk->base, HEAP_GLIBC_MAIN) : heap_add(walk, arena, HEAP_GLIBC_ARENA);
	size_t count = walk->count;
	for (int i = 0; i < WALK_TRIES && heap != UINT32_MAX; i++) {
		if (is_main ? main_walk(state, heap) : heaps_walk(state, arena, heap))
			return true;
		blocks_drop(walk, count);
		if (!goes_on(state))
			break;
	}
	return false;
}

static void arenas_walk(struct state *state)
{
	uint64_t arena = state->glibc.main_arena;
	unsigned count = 0, skipped = 0;
	do {
		if (!lists_read(state, arena) || !arena_walk(state, arena))
			skipped++;
		arena = glibc_next_arena(state->walk->pid, arena);
	} while (++count < ARENA_MAX && arena && arena != state->glibc.main_arena);
	if (skipped) {
		char text[100];
		snprintf(text, sizeof(text), "%u of %u arenas could not be walked", skipped, count);
		missing_add(state->walk, text);
	}
}

/* ---- chunks that are mapped alone ---- */

/* How many there are, and their bytes, as malloc itself counts them. */
struct mapped { uint64_t count, bytes; };

static bool mapped_read(const struct state *state, struct mapped *mapped)
{
	int32_t count;
	bool is_read = glibc_read(state->walk->pid, state->glibc.mapped, &mapped->bytes, sizeof(mapped->bytes)) &&
		       glibc_read(state->walk->pid, state->glibc.mapped - state->glibc.layout->mapped_count_before, &count, sizeof(count));
	mapped->count = is_read && count > 0 ? (uint64_t)count : 0;
	return is_read;
}

/* Whether a chunk that was mapped alone begins `skip` bytes behind the beginning of its mapping. */
static bool is_mapped_chunk(const struct glibc_chunk *chunk, uint64_t skip, uint64_t left)
{
	uint64_t bytes = chunk->word & ~(uint64_t)GLIBC_BITS;
	return (chunk->word & GLIBC_BITS) == GLIBC_MAPPED && chunk->size_before == skip && bytes >= GLIBC_CHUNK_MIN && bytes <= left - skip &&
	       (bytes + skip) % PAGE == 0;
}

/* The chunk whose mapping begins at this address: it is there, or, with what it was made from left behind there, before a multiple of a power
 * of two. *skip: where it begins. False: there is none. */
static bool mapped_find(const struct state *state, uint64_t at, uint64_t left, uint64_t *skip, struct glibc_chunk *chunk)
{
	struct glibc_chunk first, other;
	if (!glibc_read(state->walk->pid, at, &first, sizeof(first)) || first.size_before || (first.word & GLIBC_BITS) != GLIBC_MAPPED)
		return false;
	for (uint64_t alignment = 2 * sizeof(first.user); alignment < left; alignment *= 2) {
		uint64_t block = (at + sizeof(first) - 1 + alignment) & ~(alignment - 1);
		for (int i = 0; i < 2; i++, block += alignment) {
			*skip = block - sizeof(first.user) - at;
			if (*skip < left && glibc_read(state->walk->pid, at + *skip, &other, sizeof(other)) && is_mapped_chunk(&other, *skip, left)) {
				*chunk = other;
				return true;
			}
		}
	}
	*skip = 0;
	*chunk = first;
	return is_mapped_chunk(&first, 0, left);
}

/* Whether such chunks may lie there: memory of no file, without a name of the kernel's, that is no heap of an arena. */
static bool is_mapped_alone(const struct state *state, const struct proc_map *map)
{
	struct glibc_heap info;
	bool has_name = map->path[0] && strncmp(map->path, "[anon:", 6) != 0;
	if (map->inode || has_name || strncmp(map->permissions, "rw", 2) != 0)
		return false;
	if (!glibc_read(state->walk->pid, map->low & ~(uint64_t)(GLIBC_ARENA_ALIGNMENT - 1), &info, sizeof(info)))
		return true;
	for (uint32_t i = 0; i < state->walk->heap_count; i++)
		if (state->walk->heaps[i].handle == info.arena)
			return false;
	return true;
}

/* Take the chunk whose mapping begins here; the mapping's bytes, 0: there is none. */
static uint64_t mapped_take(struct state *state, uint64_t at, uint64_t high, uint32_t heap, struct mapped *found)
{
	struct glibc_chunk chunk;
	uint64_t skip;
	if (!mapped_find(state, at, high - at, &skip, &chunk))
		return 0;
	uint64_t bytes = chunk.word & ~(uint64_t)GLIBC_BITS;
	if (!block_add(state->walk, at + skip + 16, bytes - 16, heap))
		return 0;
	found->count++;
	found->bytes += bytes + skip;
	return bytes + skip;
}

/* Pages that were never touched are passed over: reading them would change that. */
static void mapped_scan(struct state *state, int pages, const struct proc_map *map, uint32_t heap, const struct mapped *wanted, struct mapped *found)
{
	const uint64_t present = UINT64_C(3) << 62;
	uint64_t entries[PAGES];
	for (uint64_t at = map->low; at < map->high && found->count < wanted->count && now_ns() < state->until_ns;) {
		ssize_t got = pread(pages, entries, sizeof(entries), (off_t)(at / PAGE * sizeof(*entries)));
		uint64_t begin = at, end = at + (got > 0 ? (uint64_t)got / sizeof(*entries) * PAGE : 0);
		while (at < end && at < map->high) {
			uint64_t bytes = entries[(at - begin) / PAGE] & present ? mapped_take(state, at, map->high, heap, found) : 0;
			at += bytes ? bytes : PAGE;
		}
		if (end == begin)
			return;
	}
}

static bool mapped_walk_once(struct state *state, uint32_t heap)
{
	struct proc_map *maps = NULL;
	struct mapped before, after, found = {0, 0};
	char path[64];
	if (!mapped_read(state, &before))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)state->walk->pid);
	int pages = open(path, O_RDONLY | O_CLOEXEC), count = before.count ? proc_read_maps(state->walk->pid, &maps) : 0;
	for (int i = 0; i < count; i++)
		if (is_mapped_alone(state, &maps[i]))
			mapped_scan(state, pages, &maps[i], heap, &before, &found);
	free(maps);
	if (pages >= 0)
		close(pages);
	return mapped_read(state, &after) && !memcmp(&before, &after, sizeof(before)) && !memcmp(&before, &found, sizeof(before));
}

/* Nobody has a list of them, but malloc knows how many there are: all are found, or none is believed. */
static void mapped_walk(struct state *state)
{
	struct walk *walk = state->walk;
	size_t count = walk->count;
	uint32_t heap = heap_add(walk, walk->base, HEAP_GLIBC_MMAP);
	for (int i = 0; i < WALK_TRIES && heap != UINT32_MAX; i++) {
		if (mapped_walk_once(state, heap))
			return;
		blocks_drop(walk, count);
		if (!goes_on(state))
			break;
	}
	missing_add(walk, "blocks that are mapped alone were not found");
}

/* ---- all of it ---- */

static void state_fini(struct state *state)
{
	map_fini(&state->listed);
	map_fini(&state->keys);
	map_fini(&state->caches);
	free(state->first);
	free(state->second);
	free(state->offsets);
}

static int block_compare(const void *a, const void *b)
{
	const struct walk_block *left = a, *right = b;
	return (left->address > right->address) - (left->address < right->address);
}

static void walk_once(struct state *state)
{
	struct walk *walk = state->walk;
	arenas_walk(state);
	mapped_walk(state);
	qsort(walk->blocks, walk->count, sizeof(*walk->blocks), block_compare);
}

/* Those that are in `other`, too; both are sorted. */
static void blocks_intersect(struct walk *walk, const struct walk_block *other, size_t other_count)
{
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < walk->count; i++) {
		const struct walk_block block = walk->blocks[i];
		while (at < other_count && other[at].address < block.address)
			at++;
		if (at < other_count && other[at].address == block.address && other[at].usable_bytes == block.usable_bytes)
			walk->blocks[kept++] = block;
		else
			walk->bytes -= block.usable_bytes;
	}
	walk->count = kept;
}

/* Until nothing is missing two times in a row, or not for ever. */
static void walk_twice(struct state *state)
{
	struct walk *walk = state->walk;
	bool was_whole = false;
	for (int i = 0; i < PASSES; i++) {
		struct walk_block *blocks = walk->blocks;
		size_t count = walk->count;
		char missing[sizeof(walk->missing)];
		memcpy(missing, walk->missing, sizeof(missing));
		walk->blocks = NULL;
		walk->count = walk->capacity = walk->bytes = walk->heap_count = 0;
		walk->missing[0] = 0;
		walk_once(state);
		bool is_whole = !walk->missing[0], is_last = i && ((is_whole && was_whole) || i == PASSES - 1 || !goes_on(state));
		if (is_last)
			blocks_intersect(walk, blocks, count);
		if (is_last && is_whole)
			memcpy(walk->missing, missing, sizeof(missing));
		free(blocks);
		if (is_last)
			break;
		was_whole = is_whole;
		calls_await(state->region);
	}
	caches_read_again(state);
	caches_drop(walk, &state->caches);
}

static void glibc_walk(struct walk *walk, const struct region *region)
{
	struct state state = {.walk = walk, .region = region, .first = malloc(WINDOW_BYTES), .second = malloc(WINDOW_BYTES),
			      .offsets = malloc((CHUNKS_MAX + 2) * sizeof(uint32_t)), .is_alone = proc_status_value(walk->pid, "Threads") == 1,
			      .until_ns = now_ns() + WALK_LIMIT_MS * UINT64_C(1000000)};
	struct diag diag = {""};
	if (!state.first || !state.second || !state.offsets)
		missing_add(walk, "no memory to walk its heaps");
	else if (walk->has_odd_heaps)
		missing_add(walk, "GLIBC_TUNABLES changes where its arenas lie");
	else if (glibc_find(&state.glibc, walk->pid, walk->base, walk->end, &diag) != 0)
		missing_add(walk, diag.text);
	else if (state.glibc.main_arena && state.glibc.is_unused)
		;
	else if (!state.glibc.main_arena || !state.glibc.mapped)
		missing_add(walk, "malloc's arenas were not found");
	else if (!caches_find(&state))
		missing_add(walk, "the caches of its threads were not found");
	else {
		walk_twice(&state);
	}
	state_fini(&state);
}

/* ---- calls that were under way at the attach ---- */

static bool thread_file(const struct walk *walk, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)walk->pid, (int)tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	return length > 0;
}

/* Whether malloc makes such a system call: for memory, or to wait for an arena. */
static bool is_malloc_call(const struct walk *walk, long number, uint64_t first)
{
	static const long numbers[] = {SYS_mmap, SYS_munmap, SYS_brk, SYS_mprotect, SYS_mremap, SYS_madvise};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (number == numbers[i])
			return true;
	return number == SYS_futex && ((first >= walk->base && first < walk->end) || first % GLIBC_ARENA_ALIGNMENT <= GLIBC_HEAP_MOST);
}

/* It has called the heap since, has worked for longer than a call takes, or waits for something else. */
static bool is_settled(const struct walk *walk, const struct region *region, struct walk_thread *thread)
{
	char text[256];
	long number;
	unsigned long long first, cpu_ns;
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++)
		if (region_slot(region, i)->fs_base == thread->pointer)
			return true;
	if (!thread_file(walk, thread->tid, "syscall", text, sizeof(text)))
		return true;
	if (sscanf(text, "%ld 0x%llx", &number, &first) == 2 && !is_malloc_call(walk, number, first))
		return true;
	if (!thread_file(walk, thread->tid, "schedstat", text, sizeof(text)) || sscanf(text, "%llu", &cpu_ns) != 1)
		return false;
	if (!thread->cpu_ns)
		thread->cpu_ns = cpu_ns;
	return cpu_ns - thread->cpu_ns > CALL_CPU_NS;
}

/* Calls that were under way when the entries were patched have no event: they have to be over, or what they free would be taken for in use. */
static void threads_settle(struct walk *walk, const struct region *region)
{
	uint32_t settled = 0;
	for (int i = 0; i < CALLS_LIMIT_MS && settled < walk->thread_count; i++) {
		if (i)
			pause_ns(1000000);
		settled = 0;
		for (uint32_t j = 0; j < walk->thread_count; j++) {
			struct walk_thread *thread = &walk->threads[j];
			thread->is_settled = thread->is_settled || is_settled(walk, region, thread);
			settled += thread->is_settled;
		}
	}
	if (settled < walk->thread_count) {
		char text[100];
		snprintf(text, sizeof(text), "%u threads may have been in heap calls all the time", walk->thread_count - settled);
		missing_add(walk, text);
	}
}

void walk_run(struct walk *walk, const struct region *region)
{
	uint64_t began_ns = now_ns();
	threads_settle(walk, region);
	if (walk->base)
		glibc_walk(walk, region);
	if (walk->other[0] || !walk->base) {
		char text[200];
		snprintf(text, sizeof(text), "%s has its own heap, which cannot be walked", walk->other[0] ? walk->other : "the program");
		missing_add(walk, text);
	}
	calls_await(region);
	walk->ticks = inject_ticks();
	walk->took_ns = now_ns() - began_ns;
	if (walk->missing[0] && is_gone(walk->pid))
		snprintf(walk->missing, sizeof(walk->missing), "it ended before its heaps were read");
}

void walk_skip(struct walk *walk, const char *why)
{
	missing_add(walk, why);
}

void walk_fini(struct walk *walk)
{
	free(walk->threads);
	free(walk->heaps);
	free(walk->blocks);
	*walk = (struct walk){0};
}
