/* SPDX-License-Identifier: MIT */
/*
 * A thread that ends frees the chunks of its cache, before glibc 2.43 with the mark in them. A caller who gets such
 * a chunk and does not write its second word has a block that seems to be cached. It is in use if it lies in no cache
 * during several checks, and does not change:
 *
 *     words    lists    words ... words    lists    words    another walk    words
 *
 * A chunk that stays in a cache that long is in its list. A chunk that leaves one without an event, since its thread
 * ends, shows in one of three ways. It lies in a fast bin, whose lists are read after those of the caches. Or its words
 * change. Or it is no chunk any more, and the other walk does not find it.
 */
#include "heapwalk/unconfirmed.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "heapwalk/thread_caches.h"

enum { SOME = 64, LISTINGS = 3, LOOKS = 8 };

COMPARE_BY(unconfirmed_compare, struct unconfirmed_block, block.address)

void unconfirmed_take(struct heap_reading *reading, struct unconfirmed *unconfirmed)
{
	struct heapwalk *walk = reading->walk;
	size_t count = 0, kept = 0;
	for (size_t i = 0; i < walk->count; i++)
		count += (walk->blocks[i].heap & HEAPWALK_UNCONFIRMED) != 0;
	*unconfirmed = (struct unconfirmed){.items = count ? calloc(count, sizeof(*unconfirmed->items)) : NULL};
	if (count && !unconfirmed->items)
		found_missing_add(walk, "no memory for blocks that may be free in a cache");
	for (size_t i = 0; i < walk->count; i++) {
		struct heapwalk_block block = walk->blocks[i];
		if (!(block.heap & HEAPWALK_UNCONFIRMED)) {
			walk->blocks[kept++] = block;
			continue;
		}
		walk->bytes -= block.usable_bytes;
		if (unconfirmed->items)
			unconfirmed->items[unconfirmed->count++].block = block;
	}
	walk->count = kept;
	/* The blocks come arena by arena, which lie anywhere. */
	if (unconfirmed->count)
		qsort(unconfirmed->items, unconfirmed->count, sizeof(*unconfirmed->items), unconfirmed_compare);
}

/* Read the words of some, without whether the chunk before is in use. Of one whose memory is gone they are zero. */
static void words_read(const struct heap_reading *reading, const struct unconfirmed_block *items, size_t count,
		       uint64_t (*words)[3])
{
	struct glibc_piece pieces[SOME];
	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct glibc_piece){items[i].block.address - sizeof(**words), words[i], sizeof(*words)};
	bool are_read = glibc_read_pieces(reading->walk->pid, pieces, count);
	for (size_t i = 0; i < count; i++) {
		if (!are_read && !glibc_read_pieces(reading->walk->pid, &pieces[i], 1))
			memset(words[i], 0, sizeof(words[i]));
		words[i][0] &= ~(uint64_t)GLIBC_BEFORE_IN_USE;
	}
}

/* Drop those whose words are others than before; what cannot be read, too. */
static void words_check(const struct heap_reading *reading, struct unconfirmed *unconfirmed, bool is_first)
{
	uint64_t words[SOME][3];
	size_t kept = 0;
	for (size_t done = 0, some; done < unconfirmed->count; done += some) {
		struct unconfirmed_block *items = unconfirmed->items + done;
		some = unconfirmed->count - done < SOME ? unconfirmed->count - done : SOME;
		words_read(reading, items, some, words);
		for (size_t i = 0; i < some; i++) {
			if (is_first)
				memcpy(items[i].words, words[i], sizeof(words[i]));
			if (!memcmp(items[i].words, words[i], sizeof(words[i])) &&
			    reading_has_key(reading, words[i][2]))
				unconfirmed->items[kept++] = items[i];
		}
	}
	unconfirmed->count = kept;
}

void unconfirmed_drop_changed(const struct heap_reading *reading, struct unconfirmed *unconfirmed)
{
	words_check(reading, unconfirmed, false);
}

/* Set the bins in which the blocks would lie if cached: one for each size, then some for many sizes each. */
static void bins_want(const struct unconfirmed *unconfirmed, struct cache_bins *bins)
{
	enum { SMALL_BINS = 64 };
	*bins = (struct cache_bins){.is_wanted = {false}};
	for (size_t i = 0; i < unconfirmed->count; i++) {
		uint64_t bin = (unconfirmed->items[i].block.usable_bytes + sizeof(uint64_t) - GLIBC_CHUNK_MIN) / 16;
		if (bin < SMALL_BINS)
			bins->is_wanted[bin] = true;
		for (uint32_t j = SMALL_BINS; bin >= SMALL_BINS && j < GLIBC_BINS_MAX; j++)
			bins->is_wanted[j] = true;
	}
}

/* Drop those in a list of free chunks. False: not all of the lists could be read. */
static bool lists_check(struct heap_reading *reading, struct unconfirmed *unconfirmed)
{
	struct map cached = {0};
	struct cache_bins bins;
	bins_want(unconfirmed, &bins);
	bool are_read = caches_list(reading, &bins, &cached);
	uint64_t arena = reading->glibc.main_arena;
	do {
		are_read = fast_bins_list(reading, arena) && are_read;
		arena = glibc_next_arena(&reading->glibc, reading->walk->pid, arena);
	} while (arena && arena != reading->glibc.main_arena && !reading_is_late(reading));
	size_t kept = 0;
	for (size_t i = 0; i < unconfirmed->count; i++) {
		uint64_t chunk = unconfirmed->items[i].block.address - GLIBC_CHUNK_HEAD;
		if (!map_find(&cached, chunk) && !map_find(&reading->listed, chunk))
			unconfirmed->items[kept++] = unconfirmed->items[i];
	}
	unconfirmed->count = kept;
	map_fini(&cached);
	return are_read && arena;
}

void unconfirmed_watch(struct heap_reading *reading, struct unconfirmed *unconfirmed)
{
	/* As a rule all of them are in a list at the first look. */
	lists_check(reading, unconfirmed);
	words_check(reading, unconfirmed, true);
	for (int listings = 0; unconfirmed->count && listings < LISTINGS;) {
		listings += lists_check(reading, unconfirmed);
		for (int i = 0; i < LOOKS && unconfirmed->count; i++) {
			/* Lists that are long and change can take too long: what is in doubt is then taken for
			   cached. */
			if (!reading_goes_on(reading)) {
				found_missing_add(reading->walk, UNCONFIRMED_LEFT);
				unconfirmed->count = 0;
			}
			unconfirmed_drop_changed(reading, unconfirmed);
		}
	}
}

void unconfirmed_confirm(struct unconfirmed *unconfirmed, const struct heapwalk *other)
{
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < unconfirmed->count; i++) {
		const struct heapwalk_block *block = &unconfirmed->items[i].block;
		while (at < other->count && other->blocks[at].address < block->address)
			at++;
		if (at < other->count && other->blocks[at].address == block->address &&
		    other->blocks[at].usable_bytes == block->usable_bytes)
			unconfirmed->items[kept++] = unconfirmed->items[i];
	}
	unconfirmed->count = kept;
}

void unconfirmed_return(struct unconfirmed *unconfirmed, struct heapwalk *walk)
{
	for (size_t i = 0; i < unconfirmed->count; i++) {
		const struct heapwalk_block block = unconfirmed->items[i].block;
		found_block_add(walk, block.address, block.usable_bytes, block.heap & ~(uint32_t)HEAPWALK_UNCONFIRMED);
	}
	free(unconfirmed->items);
	*unconfirmed = (struct unconfirmed){0};
}
