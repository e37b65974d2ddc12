/* SPDX-License-Identifier: MIT */
/*
 * Free chunks that the next chunk does not know of: those in threads' caches have a mark, those in fast bins only the bins' lists.
 *
 * A fast bin is a stack. What lay in it at the attach, and still does, is its lower end, to which any reading leads that is not led astray by
 * what is taken from its top meanwhile. To list a chunk that is none is harmless: it has events.
 */
#include "inject/chunks.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_TRIES = 50, LIST_READINGS = 3, LIST_MAX = 1 << 24, THREAD_SCAN_BYTES = 64 << 10, SAMPLES_MAX = 256 };

/* ---- caches ---- */

/* Where the main thread's cache, which is the first chunk of all, is named beneath a thread's pointer; 0: nowhere. */
static int64_t cache_offset(const struct chunks *state)
{
	const struct walk *walk = state->walk;
	uint64_t block = state->glibc.main_start + 16, words[CHUNKS_PAGE / sizeof(uint64_t)];
	for (uint32_t i = 0; i < walk->thread_count; i++) {
		uint64_t high = walk->threads[i].pointer & ~7ull, lowest = high - THREAD_SCAN_BYTES;
		/* Page by page: any of them may be the first one that is there. */
		for (uint64_t low; high > lowest; high = low) {
			low = (high - 1) & ~(uint64_t)(CHUNKS_PAGE - 1);
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
static bool cache_read(struct chunks *state, uint64_t thread_pointer)
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

static bool caches_read(struct chunks *state)
{
	for (uint32_t i = 0; i < state->walk->thread_count; i++)
		if (!cache_read(state, state->walk->threads[i].pointer))
			return false;
	return true;
}

/* Threads that have come since have theirs, too: they called the heap, and so have slots. What of them is no cache is none. */
static void caches_read_again(struct chunks *state)
{
	const struct region *region = state->region;
	uint32_t ready = __atomic_load_n(&region->header->slot_ready, __ATOMIC_ACQUIRE);
	caches_read(state);
	for (uint32_t i = 0; i < ready && i < region->limits.slot_max; i++)
		if (region_slot(region, i)->fs_base)
			cache_read(state, region_slot(region, i)->fs_base);
}

void caches_drop(struct chunks *state)
{
	struct walk *walk = state->walk;
	size_t kept = 0;
	caches_read_again(state);
	for (size_t i = 0; i < walk->count; i++) {
		const struct walk_block block = walk->blocks[i];
		if (block.usable_bytes == GLIBC_CACHE_CHUNK - 8 && map_find(&state->caches, block.address))
			walk->bytes -= block.usable_bytes;
		else
			walk->blocks[kept++] = block;
	}
	walk->count = kept;
}

/* The key that most of the cached blocks have; 0: none is cached, or they disagree since they are being taken out. */
static uint64_t key_read(const struct chunks *state, bool *is_certain)
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

bool caches_find(struct chunks *state)
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
	for (int i = 0; i < CHUNKS_READ_TRIES && !is_certain; i++) {
		uint64_t key = key_read(state, &is_certain);
		if (is_certain && key)
			map_add(&state->keys, key, &added);
		if (!is_certain && !walk_goes_on(state))
			return false;
	}
	return is_certain;
}

bool caches_have(const struct chunks *state, uint64_t key)
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
static bool list_read(const struct chunks *state, uint64_t *page, uint64_t chunk, struct glibc_chunk *head)
{
	uint64_t offset = chunk % CHUNKS_PAGE;
	if (offset + sizeof(*head) > CHUNKS_PAGE)
		return glibc_read(state->walk->pid, chunk, head, sizeof(*head));
	if (*page != chunk - offset && !glibc_read(state->walk->pid, *page = chunk - offset, state->first, CHUNKS_PAGE)) {
		*page = 0;
		return false;
	}
	memcpy(head, state->first + offset, sizeof(*head));
	return true;
}

/* Follow a fast bin to its end. False: it does not lead there now. */
static bool list_follow(const struct chunks *state, struct list *list, uint64_t chunk, unsigned bin)
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
static bool list_holds(const struct chunks *state, const struct list *list)
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
static bool lists_read_once(const struct chunks *state, uint64_t address, struct list *list, bool *holds)
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
bool lists_read(struct chunks *state, uint64_t arena)
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
		if (readings < LIST_READINGS && !walk_goes_on(state))
			break;
	}
	free(list.chunks);
	free(list.links);
	return readings >= LIST_READINGS;
}
