/* SPDX-License-Identifier: MIT */
/*
 * Free chunks that only lists show: those in fast bins, and those in caches.
 *
 * A fast bin is a stack. The chunks that lay in it at the attach, and still do, are its lower end. Any reading arrives
 * there unless chunks taken from the top lead it astray. A chunk listed by mistake does no harm: it has events.
 */
#include "heapwalk/free_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { LIST_TRIES = 50, BIN_TRIES = 200, LIST_READINGS = 3, LIST_MAX = 1 << 24 };

struct list {
	uint64_t *chunks, *links;
	size_t count, capacity;
};

static bool list_add(struct list *list, uint64_t chunk, uint64_t link)
{
	if (list->count == list->capacity) {
		size_t capacity = grow_capacity(list->capacity);
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

/* Read the head of a chunk. It probably lies in the same page as the one before, which is kept in the first window. */
static bool list_read(const struct heap_reading *reading, uint64_t *page, uint64_t chunk, struct glibc_chunk *head)
{
	uint64_t offset = chunk % READING_PAGE;
	if (offset + sizeof(*head) > READING_PAGE)
		return glibc_read(reading->walk->pid, chunk, head, sizeof(*head));
	if (*page != chunk - offset &&
	    !glibc_read(reading->walk->pid, *page = chunk - offset, reading->first, READING_PAGE)) {
		*page = 0;
		return false;
	}
	memcpy(head, reading->first + offset, sizeof(*head));
	return true;
}

/* The kind of a list: how its links name chunks, and what these are. */
struct kind {
	uint64_t named_at; /* of a chunk */
	uint64_t bytes;    /* 0: not all have as many */
	uint64_t cache;    /* that they lie in; 0: in none */
};

/* Return whether a block with this second word can lie in the cache. The cache's thread may have begun just now. */
static bool is_key_of(const struct heap_reading *reading, uint64_t cache, uint64_t word)
{
	return reading->glibc.layout->has_random_key ? map_find(&reading->keys, word) != NULL : word == cache;
}

static bool is_of_kind(const struct heap_reading *reading, const struct kind *kind, uint64_t chunk,
		       const struct glibc_chunk *head)
{
	return !(chunk & 15) && (!kind->bytes || (head->word & ~(uint64_t)GLIBC_BITS) == kind->bytes) &&
	       (!kind->cache || is_key_of(reading, kind->cache, head->user[1]));
}

/* Follow a list to its end. False: it does not lead there now. */
static bool list_follow(const struct heap_reading *reading, struct list *list, uint64_t link, const struct kind *kind)
{
	uint64_t page = 0;
	while (link) {
		struct glibc_chunk head;
		uint64_t chunk = link - kind->named_at;
		if (list->count >= LIST_MAX || !list_read(reading, &page, chunk, &head) ||
		    !is_of_kind(reading, kind, chunk, &head) || !list_add(list, chunk, head.user[0]))
			return false;
		link = reading->glibc.layout->is_mangled ? (chunk + GLIBC_CHUNK_HEAD) >> 12 ^ head.user[0]
							 : head.user[0];
	}
	return true;
}

/* Return whether all links are still as they were read. */
static bool list_holds(const struct heap_reading *reading, const struct list *list)
{
	enum { SOME = 512 };
	struct glibc_piece pieces[SOME];
	uint64_t links[SOME];
	for (size_t done = 0; done < list->count; done += SOME) {
		size_t some = list->count - done < SOME ? list->count - done : SOME;
		for (size_t i = 0; i < some; i++)
			pieces[i] = (struct glibc_piece){list->chunks[done + i] + 16, &links[i], sizeof(*links)};
		if (!glibc_read_pieces(reading->walk->pid, pieces, some) ||
		    memcmp(links, list->links + done, some * sizeof(*links)) != 0)
			return false;
	}
	return true;
}

/* Read the arena's fast bins to their ends once. *holds: nothing in them has changed during this. */
static bool lists_read_once(const struct heap_reading *reading, uint64_t address, struct list *list, bool *holds)
{
	struct glibc_arena before, after;
	list->count = 0;
	if (!glibc_read(reading->walk->pid, address, &before, sizeof(before)))
		return false;
	uint32_t bins = reading->glibc.layout->fast_count;
	for (uint32_t bin = 0; bin < bins; bin++)
		if (!list_follow(reading, list, glibc_fast(&before)[bin], &(struct kind){.bytes = (bin + 2) * 16}))
			return false;
	*holds = list_holds(reading, list) && glibc_read(reading->walk->pid, address, &after, sizeof(after)) &&
		 memcmp(glibc_fast(&before), glibc_fast(&after), bins * sizeof(uint64_t)) == 0;
	return true;
}

static void list_map(const struct list *list, struct map *map)
{
	bool added;
	for (size_t i = 0; i < list->count; i++)
		map_add(map, list->chunks[i], &added);
}

static void list_fini(struct list *list)
{
	free(list->chunks);
	free(list->links);
}

/* One reading is enough if nothing has changed; otherwise several, of which not all are led astray. */
bool fast_bins_list(struct heap_reading *reading, uint64_t arena)
{
	struct list list = {0};
	int readings = 0;
	for (int i = 0; i < LIST_TRIES && readings < LIST_READINGS; i++) {
		bool holds = false;
		if (lists_read_once(reading, arena, &list, &holds)) {
			readings += holds ? LIST_READINGS : 1;
			list_map(&list, &reading->listed);
		}
		if (readings < LIST_READINGS && !reading_goes_on(reading))
			break;
	}
	list_fini(&list);
	return readings >= LIST_READINGS;
}

/* Read a bin of a cache to its end once. *holds: the bin has not changed during this. */
static bool bin_read_once(const struct heap_reading *reading, uint64_t cache, uint32_t bin, struct list *list,
			  bool *holds)
{
	const uint64_t at = glibc_cache_list(&reading->glibc, cache, bin);
	uint64_t first, after;
	list->count = 0;
	if (!glibc_read(reading->walk->pid, at, &first, sizeof(first)) ||
	    !list_follow(reading, list, first, &(struct kind){.named_at = GLIBC_CHUNK_HEAD, .cache = cache}))
		return false;
	*holds = list_holds(reading, list) && glibc_read(reading->walk->pid, at, &after, sizeof(after)) &&
		 first == after;
	return true;
}

/* Read a bin like a fast bin: it is a stack, too, or sorted, and readings arrive at chunks that stay in it. */
static bool bin_read(const struct heap_reading *reading, uint64_t cache, uint32_t bin, struct list *list,
		     struct map *cached)
{
	int readings = 0;
	for (int i = 0; i < BIN_TRIES && readings < LIST_READINGS && !reading_is_late(reading); i++) {
		bool holds = false;
		if (!bin_read_once(reading, cache, bin, list, &holds))
			continue;
		readings += holds ? LIST_READINGS : 1;
		list_map(list, cached);
	}
	return readings >= LIST_READINGS;
}

bool cache_list(struct heap_reading *reading, uint64_t cache, const struct cache_bins *bins, struct map *cached)
{
	struct list list = {0};
	bool is_read = true;
	for (uint32_t bin = 0; bin < reading->glibc.layout->bin_count && is_read; bin++)
		if (bins->is_wanted[bin]) {
			is_read = bin_read(reading, cache, bin, &list, cached);
			reading_has_advanced(reading);
		}
	list_fini(&list);
	return is_read;
}
