/* SPDX-License-Identifier: MIT */
/*
 * Stripped libraries have no symbols for malloc's structures, so these are found by their shape:
 *
 *     main arena   127 pairs of bin pointers, of which empty ones point to themselves; then a ring through all arenas
 *                  that leads back
 *     parameters   bytes in mapped chunks, their maximum, where the main arena begins, three numbers of the caches
 *
 * Facts: the structures malloc_state, malloc_par, heap_info and tcache_perthread_struct of glibc's releases 2.31 to
 * 2.43.
 */
#include "heapwalk/glibc_layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "os/proc.h"

enum {
	PIECES_MAX = 64,
	DATA_BYTES_MAX = 32 << 20,
	ARENAS_MAX = 1 << 16,
	PAIR_BYTES = 16,
	PAIR_COUNT = 127,
	EMPTY_MIN = 8,
	/* From where the bins begin. */
	NEXT_AT = 2048,
	ATTACHED_AT = 2064,
	SYSTEM_AT = 2072,
	END_AT = 2088
};

static const struct glibc_layout layouts[] = {
	{.first = 31,
	 .last = 31,
	 .mapped_count_before = 16,
	 .heap_bytes = 32,
	 .fast_count = 10,
	 .bin_count = 64,
	 .cached_most = 1032},
	{.first = 32,
	 .last = 33,
	 .mapped_count_before = 16,
	 .heap_bytes = 32,
	 .fast_count = 10,
	 .bin_count = 64,
	 .cached_most = 1032,
	 .is_mangled = true},
	{.first = 34,
	 .last = 34,
	 .mapped_count_before = 16,
	 .heap_bytes = 32,
	 .fast_count = 10,
	 .bin_count = 64,
	 .cached_most = 1032,
	 .is_mangled = true,
	 .has_random_key = true},
	{.first = 35,
	 .last = 41,
	 .mapped_count_before = 20,
	 .heap_bytes = 48,
	 .fast_count = 10,
	 .bin_count = 64,
	 .cached_most = 1032,
	 .is_mangled = true,
	 .has_random_key = true},
	{.first = 42,
	 .last = 42,
	 .mapped_count_before = 20,
	 .heap_bytes = 48,
	 .fast_count = 10,
	 .bin_count = 76,
	 .cached_most = 4 << 20,
	 .is_mangled = true,
	 .has_random_key = true,
	 .counts_room = true},
	{.first = 43,
	 .last = 43,
	 .mapped_count_before = 20,
	 .heap_bytes = 48,
	 .mapped_tail_bytes = 16,
	 .bin_count = 76,
	 .cached_most = 4 << 20,
	 .is_mangled = true,
	 .has_random_key = true,
	 .counts_room = true,
	 .has_no_null_cache = true},
};

bool glibc_read_pieces(pid_t pid, const struct glibc_piece *pieces, size_t count)
{
	struct iovec here[PIECES_MAX], there[PIECES_MAX];
	for (size_t done = 0; done < count;) {
		size_t some = count - done < PIECES_MAX ? count - done : PIECES_MAX, bytes = 0;
		for (size_t i = 0; i < some; i++) {
			const struct glibc_piece *piece = &pieces[done + i];
			here[i] = (struct iovec){piece->data, piece->size};
			there[i] = (struct iovec){(void *)(uintptr_t)piece->address, piece->size};
			bytes += piece->size;
		}
		if (process_vm_readv(pid, here, some, there, some, 0) != (ssize_t)bytes)
			return false;
		done += some;
	}
	return true;
}

bool glibc_read(pid_t pid, uint64_t address, void *data, size_t size)
{
	return glibc_read_pieces(pid, &(struct glibc_piece){address, data, size}, 1);
}

/* ---- arenas and caches ---- */

static size_t top_index(const struct glibc *glibc)
{
	return glibc->layout->fast_count ? glibc->layout->fast_count + 1 : 0;
}

uint64_t glibc_top(const struct glibc *glibc, const struct glibc_arena *arena)
{
	return arena->words[top_index(glibc)];
}

const uint64_t *glibc_fast(const struct glibc_arena *arena)
{
	return arena->words + 1;
}

/* Return the offset of the bins: after the top and one more word. */
static uint64_t bins_at(const struct glibc *glibc)
{
	return offsetof(struct glibc_arena, words) + (top_index(glibc) + 2) * sizeof(uint64_t);
}

/* Return the value of an arena's top before it has a chunk. */
static uint64_t no_top(const struct glibc *glibc, uint64_t arena)
{
	return arena + bins_at(glibc) - PAIR_BYTES;
}

uint64_t glibc_arena_bytes(const struct glibc *glibc)
{
	return bins_at(glibc) + END_AT;
}

uint64_t glibc_next_arena(const struct glibc *glibc, pid_t pid, uint64_t arena)
{
	uint64_t next;
	return glibc_read(pid, arena + bins_at(glibc) + NEXT_AT, &next, sizeof(next)) ? next : 0;
}

bool glibc_read_cache(const struct glibc *glibc, pid_t pid, uint64_t address, struct glibc_cache *cache)
{
	const uint32_t bins = glibc->layout->bin_count;
	const struct glibc_piece pieces[] = {
		{address, cache->number, bins * sizeof(*cache->number)},
		{glibc_cache_list(glibc, address, 0), cache->first, bins * sizeof(*cache->first)}};
	return glibc_read_pieces(pid, pieces, 2);
}

uint64_t glibc_cache_list(const struct glibc *glibc, uint64_t cache, uint32_t bin)
{
	return cache + glibc->layout->bin_count * sizeof(uint16_t) + bin * sizeof(uint64_t);
}

uint64_t glibc_cache_bytes(const struct glibc *glibc)
{
	return glibc_cache_list(glibc, 0, glibc->layout->bin_count);
}

/* ---- the version ---- */

/* Return the number after "version 2." in the text that the library prints when it is executed; 0: none. */
static unsigned version_in(const char *data, size_t size)
{
	static const char word[] = "GNU C Library", number[] = " version 2.";
	for (const char *at = data, *end = data + size; (at = memmem(at, (size_t)(end - at), word, strlen(word)));
	     at++) {
		char line[256] = "";
		memcpy(line, at, (size_t)(end - at) < sizeof(line) - 1 ? (size_t)(end - at) : sizeof(line) - 1);
		line[strcspn(line, "\n")] = 0;
		const char *found = strstr(line, number);
		if (found)
			return (unsigned)strtoul(found + strlen(number), NULL, 10);
	}
	return 0;
}

static const struct glibc_layout *layout_of(unsigned version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (version >= layouts[i].first && version <= layouts[i].last)
			return &layouts[i];
	return NULL;
}

/* ---- shapes ---- */

static uint64_t word_at(const uint8_t *data, size_t offset)
{
	uint64_t word;
	memcpy(&word, data + offset, sizeof(word));
	return word;
}

static bool has_bins(const struct glibc *glibc, const uint8_t *arena, uint64_t address)
{
	unsigned empty = 0;
	for (unsigned i = 0; i < PAIR_COUNT; i++) {
		uint64_t offset = bins_at(glibc) + i * PAIR_BYTES, self = address + offset - PAIR_BYTES;
		uint64_t first = word_at(arena, offset), last = word_at(arena, offset + 8);
		empty += first == self && last == self;
		if (!first || !last || ((first | last) & 7) || (first == self) != (last == self))
			return false;
	}
	return empty >= EMPTY_MIN;
}

/* Return whether an arena is as in the library's file, alone in its ring. */
static bool is_untouched(const struct glibc *glibc, const uint8_t *arena, uint64_t address)
{
	uint64_t bins = bins_at(glibc);
	for (unsigned i = 0; i < PAIR_COUNT * PAIR_BYTES; i += 8)
		if (word_at(arena, bins + i))
			return false;
	return word_at(arena, bins + NEXT_AT) == address && word_at(arena, bins + ATTACHED_AT) == 1 &&
	       !word_at(arena, bins + SYSTEM_AT);
}

static bool is_in_ring(const struct glibc *glibc, pid_t pid, uint64_t arena)
{
	uint64_t at = arena;
	for (unsigned i = 0; i < ARENAS_MAX && at; i++)
		if ((at = glibc_next_arena(glibc, pid, at)) == arena)
			return true;
	return false;
}

static void find_main_arena(struct glibc *glibc, pid_t pid, const uint8_t *data, size_t size, uint64_t address)
{
	for (size_t offset = 0; !glibc->main_arena && offset + glibc_arena_bytes(glibc) <= size; offset += 16) {
		glibc->is_unused = is_untouched(glibc, data + offset, address + offset);
		if (glibc->is_unused ||
		    (has_bins(glibc, data + offset, address + offset) && is_in_ring(glibc, pid, address + offset)))
			glibc->main_arena = address + offset;
	}
}

/* Parameters of malloc, from the bytes in mapped chunks on. */
enum parameter { MAPPED, MAPPED_MOST, START, BINS, CACHED_BYTES, CACHED_COUNT, PARAMETER_COUNT };

/* Check the start of a main arena. Without a chunk the start is 0, and normally so is everything mapped; then their
   numbers show the shape. */
static bool begins_right(const struct glibc *glibc, const uint64_t *parameters, const uint8_t *data, uint64_t top,
			 uint64_t system_bytes)
{
	uint64_t start = parameters[START];
	int32_t mapped[3]; /* their number now, the most that there may be, the most that there have been */
	if (top != no_top(glibc, glibc->main_arena))
		return start && start <= top && top - start <= system_bytes;
	memcpy(mapped, data - glibc->layout->mapped_count_before, sizeof(mapped));
	return !start && mapped[0] >= 0 && mapped[1] >= mapped[0] && mapped[1] && mapped[2] >= mapped[0] &&
	       !mapped[2] == !parameters[MAPPED_MOST];
}

static bool are_parameters(const struct glibc *glibc, const uint64_t *parameters, const uint8_t *data, uint64_t top,
			   uint64_t system_bytes)
{
	return parameters[MAPPED] <= parameters[MAPPED_MOST] && parameters[BINS] &&
	       parameters[BINS] <= GLIBC_BINS_MAX && parameters[CACHED_BYTES] <= glibc->layout->cached_most &&
	       parameters[CACHED_COUNT] <= UINT16_MAX && begins_right(glibc, parameters, data, top, system_bytes);
}

static void find_parameters(struct glibc *glibc, pid_t pid, const uint8_t *data, size_t size, uint64_t address)
{
	struct glibc_arena arena;
	uint64_t system_bytes, parameters[PARAMETER_COUNT];
	if (glibc->mapped || !glibc->main_arena || !glibc_read(pid, glibc->main_arena, &arena, sizeof(arena)) ||
	    !glibc_read(pid, glibc->main_arena + bins_at(glibc) + SYSTEM_AT, &system_bytes, sizeof(system_bytes)))
		return;
	for (size_t offset = 32; offset + sizeof(parameters) <= size && !glibc->mapped; offset += 8) {
		memcpy(parameters, data + offset, sizeof(parameters));
		if (!are_parameters(glibc, parameters, data + offset, glibc_top(glibc, &arena), system_bytes))
			continue;
		glibc->mapped = address + offset;
		/* Others may have moved the break before. */
		glibc->main_start = (parameters[START] + 15) / 16 * 16;
		glibc->cached_bytes = parameters[CACHED_BYTES];
		glibc->cached_count = parameters[CACHED_COUNT];
	}
}

/* ---- both ---- */

typedef void look(struct glibc *glibc, pid_t pid, const uint8_t *data, size_t size, uint64_t address);

static void find_version(struct glibc *glibc, pid_t pid, const uint8_t *data, size_t size, uint64_t address)
{
	(void)pid;
	(void)address;
	if (!glibc->layout)
		glibc->layout = layout_of(version_in((const char *)data, size));
}

/* Pass all of the image's memory with this right, or without it, to a search. */
static void search_through(struct glibc *glibc, pid_t pid, const struct proc_map *maps, int count, uint64_t base,
			   uint64_t end, bool is_writable, look *look)
{
	for (int i = 0; i < count; i++) {
		uint64_t size = maps[i].high - maps[i].low;
		if (maps[i].low < base || maps[i].high > end || maps[i].permissions[0] != 'r' ||
		    (maps[i].permissions[1] == 'w') != is_writable || size > DATA_BYTES_MAX)
			continue;
		uint8_t *data = malloc(size);
		if (data && glibc_read(pid, maps[i].low, data, size))
			look(glibc, pid, data, size, maps[i].low);
		free(data);
	}
}

int glibc_find(struct glibc *glibc, pid_t pid, uint64_t base, uint64_t end, struct diag *diag)
{
	struct proc_map *maps;
	int count = proc_read_maps(pid, &maps);
	*glibc = (struct glibc){0};
	search_through(glibc, pid, maps, count, base, end, false, find_version);
	if (glibc->layout) {
		search_through(glibc, pid, maps, count, base, end, true, find_main_arena);
		search_through(glibc, pid, maps, count, base, end, true, find_parameters);
	}
	free(maps);
	if (!glibc->layout)
		return diag_fail(diag, ENOTSUP, "its C library is not glibc 2.%u to 2.%u", layouts[0].first,
				 layouts[sizeof(layouts) / sizeof(*layouts) - 1].last);
	return 0;
}
