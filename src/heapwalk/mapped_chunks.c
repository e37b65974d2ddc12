/* SPDX-License-Identifier: MIT */
/* Blocks that malloc mapped alone, found by their heads in memory of no file. */
#include "heapwalk/mapped_chunks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/proc.h"

enum { PAGES = 512 };

/* How many there are, and their bytes, as malloc itself counts them. */
struct mapped {
	uint64_t count, bytes;
};

static bool mapped_read(const struct heap_reading *reading, struct mapped *mapped)
{
	int32_t count;
	bool is_read =
		glibc_read(reading->walk->pid, reading->glibc.mapped, &mapped->bytes, sizeof(mapped->bytes)) &&
		glibc_read(reading->walk->pid, reading->glibc.mapped - reading->glibc.layout->mapped_count_before,
			   &count, sizeof(count));
	mapped->count = is_read && count > 0 ? (uint64_t)count : 0;
	return is_read;
}

/* Return the size of the mapping of a chunk that begins `skip` bytes after the mapping's beginning. */
static uint64_t mapping_bytes(const struct heap_reading *reading, const struct glibc_chunk *chunk, uint64_t skip)
{
	return skip + (chunk->word & ~(uint64_t)GLIBC_BITS) + reading->glibc.layout->mapped_tail_bytes;
}

/* Return whether a chunk that was mapped alone begins there. */
static bool is_mapped_chunk(const struct heap_reading *reading, const struct glibc_chunk *chunk, uint64_t skip,
			    uint64_t left)
{
	uint64_t bytes = chunk->word & ~(uint64_t)GLIBC_BITS;
	return (chunk->word & GLIBC_BITS) == GLIBC_MAPPED && chunk->size_before == skip && bytes >= GLIBC_CHUNK_MIN &&
	       bytes <= left - skip && mapping_bytes(reading, chunk, skip) <= left &&
	       mapping_bytes(reading, chunk, skip) % READING_PAGE == 0;
}

/* Find the chunk whose mapping begins at this address. It lies there or, behind bytes left over from an alignment,
   before a multiple of a power of two. *skip: its distance from the address. Return false if there is none. */
static bool mapped_find(const struct heap_reading *reading, uint64_t at, uint64_t left, uint64_t *skip,
			struct glibc_chunk *chunk)
{
	struct glibc_chunk first, other;
	if (!glibc_read(reading->walk->pid, at, &first, sizeof(first)) || first.size_before ||
	    (first.word & GLIBC_BITS) != GLIBC_MAPPED)
		return false;
	for (uint64_t alignment = 2 * sizeof(first.user); alignment < left; alignment *= 2) {
		uint64_t block = (at + sizeof(first) - 1 + alignment) & ~(alignment - 1);
		for (int i = 0; i < 2; i++, block += alignment) {
			*skip = block - sizeof(first.user) - at;
			if (*skip < left && glibc_read(reading->walk->pid, at + *skip, &other, sizeof(other)) &&
			    is_mapped_chunk(reading, &other, *skip, left)) {
				*chunk = other;
				return true;
			}
		}
	}
	*skip = 0;
	*chunk = first;
	return is_mapped_chunk(reading, &first, 0, left);
}

/* Return whether an arena lies there, also one that has come since the reading began. */
static bool is_arena(const struct heap_reading *reading, uint64_t address)
{
	enum { RING_MAX = 1 << 16 };
	for (uint32_t i = 0; i < reading->walk->heap_count; i++)
		if (reading->walk->heaps[i].handle == address)
			return true;
	if ((address & (GLIBC_ARENA_ALIGNMENT - 1)) != reading->glibc.layout->heap_bytes)
		return false;
	uint64_t at = reading->glibc.main_arena;
	for (unsigned i = 0; i < RING_MAX && at && at != address; i++)
		if ((at = glibc_next_arena(&reading->glibc, reading->walk->pid, at)) == reading->glibc.main_arena)
			return false;
	return at == address;
}

/* Return whether such chunks may lie there: memory of no file, without a name of the kernel's, that is no heap of an
   arena. */
static bool is_mapped_alone(const struct heap_reading *reading, const struct proc_map *map)
{
	struct glibc_heap info;
	bool has_name = map->path[0] && strncmp(map->path, "[anon:", 6) != 0;
	if (map->inode || has_name || strncmp(map->permissions, "rw", 2) != 0)
		return false;
	if (!glibc_read(reading->walk->pid, map->low & ~(uint64_t)(GLIBC_ARENA_ALIGNMENT - 1), &info, sizeof(info)))
		return true;
	return !is_arena(reading, info.arena);
}

/* Take the chunk whose mapping begins here; the mapping's bytes, 0: there is none. */
static uint64_t mapped_take(struct heap_reading *reading, uint64_t at, uint64_t high, uint32_t heap,
			    struct mapped *found)
{
	struct glibc_chunk chunk;
	uint64_t skip;
	if (!mapped_find(reading, at, high - at, &skip, &chunk))
		return 0;
	uint64_t bytes = mapping_bytes(reading, &chunk, skip), head_bytes = skip + GLIBC_CHUNK_HEAD;
	uint64_t kept_bytes = reading->glibc.layout->mapped_tail_bytes ? sizeof(uint64_t) : 0;
	/* Since 2.43 such a chunk may lie in a cache, too. */
	if (!reading_has_key(reading, chunk.user[1]) &&
	    !found_block_add(reading->walk, at + head_bytes, bytes - head_bytes - kept_bytes, heap))
		return 0;
	found->count++;
	found->bytes += bytes;
	return bytes;
}

/* Return whether malloc's count of bytes is inexact: since 2.43 it forgets the bytes after a chunk each time the chunk
   is resized. */
static bool is_vague(const struct heap_reading *reading)
{
	return reading->glibc.layout->mapped_tail_bytes != 0;
}

/* Return whether to search on: even for more chunks than malloc counts, if only their number shows that they are the
   right ones. */
static bool is_wanting(const struct heap_reading *reading, const struct mapped *found, const struct mapped *wanted)
{
	return found->count < wanted->count || (is_vague(reading) && found->count == wanted->count);
}

static bool is_all(const struct heap_reading *reading, const struct mapped *found, const struct mapped *wanted)
{
	return found->count == wanted->count &&
	       (is_vague(reading) ? found->bytes <= wanted->bytes : found->bytes == wanted->bytes);
}

/* Scan a mapping for chunks. Untouched pages are skipped: reading would allocate them. */
static void mapped_scan(struct heap_reading *reading, int pages, const struct proc_map *map, uint32_t heap,
			const struct mapped *wanted, struct mapped *found)
{
	const uint64_t present = UINT64_C(3) << 62;
	uint64_t entries[PAGES];
	for (uint64_t at = map->low;
	     at < map->high && is_wanting(reading, found, wanted) && !reading_is_late(reading);) {
		ssize_t got = pread(pages, entries, sizeof(entries), (off_t)(at / READING_PAGE * sizeof(*entries)));
		uint64_t begin = at, end = at + (got > 0 ? (uint64_t)got / sizeof(*entries) * READING_PAGE : 0);
		while (at < end && at < map->high) {
			uint64_t bytes = entries[(at - begin) / READING_PAGE] & present
						 ? mapped_take(reading, at, map->high, heap, found)
						 : 0;
			at += bytes ? bytes : READING_PAGE;
		}
		if (end == begin)
			return;
	}
}

bool mapped_chunks_walk(struct heap_reading *reading, uint32_t heap)
{
	struct proc_map *maps = NULL;
	struct mapped before, after, found = {0, 0};
	if (!mapped_read(reading, &before))
		return false;
	int pages = proc_open(reading->walk->pid, "pagemap", O_RDONLY),
	    count = before.count ? proc_read_maps(reading->walk->pid, &maps) : 0;
	for (int i = 0; i < count; i++)
		if (is_mapped_alone(reading, &maps[i]))
			mapped_scan(reading, pages, &maps[i], heap, &before, &found);
	free(maps);
	if (pages >= 0)
		close(pages);
	return mapped_read(reading, &after) && !memcmp(&before, &after, sizeof(before)) &&
	       is_all(reading, &found, &before);
}
