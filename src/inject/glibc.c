/* SPDX-License-Identifier: MIT */
/*
 * Stripped libraries have no symbol for what we look for, so it is known by its shape:
 *
 *     main arena   127 pairs of bin pointers, of which empty ones point to themselves; then a ring through all arenas that leads back
 *     parameters   bytes in mapped chunks, their maximum, where the main arena begins, three numbers of the caches
 *
 * Facts: the structures malloc_state, malloc_par, heap_info and tcache_perthread_struct of glibc's releases 2.31 to 2.41.
 */
#include "inject/glibc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "os/proc.h"

enum {
	PIECES_MAX = 64, DATA_BYTES_MAX = 32 << 20, ARENAS_MAX = 1 << 16,
	BINS_AT = 112, PAIR_BYTES = 16, PAIR_COUNT = 127, EMPTY_MIN = 8, NEXT_AT = 2160, ATTACHED_AT = 2176, SYSTEM_AT = 2184, ARENA_BYTES = 2200,
	CACHE_BYTES_MAX = 1032
};

static const struct glibc_layout layouts[] = {
	{31, 31, 16, 32, false, false},
	{32, 33, 16, 32, true, false},
	{34, 34, 16, 32, true, true},
	{35, 41, 20, 48, true, true},
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

uint64_t glibc_next_arena(pid_t pid, uint64_t arena)
{
	uint64_t next;
	return glibc_read(pid, arena + NEXT_AT, &next, sizeof(next)) ? next : 0;
}

/* ---- the version ---- */

/* The number behind "version 2." of the text that the library prints when it is executed; 0: none. */
static unsigned version_in(const char *data, size_t size)
{
	static const char word[] = "GNU C Library", number[] = " version 2.";
	for (const char *at = data, *end = data + size; (at = memmem(at, (size_t)(end - at), word, strlen(word))); at++) {
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

static bool has_bins(const uint8_t *arena, uint64_t address)
{
	unsigned empty = 0;
	for (unsigned i = 0; i < PAIR_COUNT; i++) {
		uint64_t offset = BINS_AT + i * PAIR_BYTES, self = address + offset - PAIR_BYTES;
		uint64_t first = word_at(arena, offset), last = word_at(arena, offset + 8);
		empty += first == self && last == self;
		if (!first || !last || ((first | last) & 15) || (first == self) != (last == self))
			return false;
	}
	return empty >= EMPTY_MIN;
}

/* As the library's file has it, alone in its ring. */
static bool is_untouched(const uint8_t *arena, uint64_t address)
{
	for (unsigned i = 0; i < PAIR_COUNT * PAIR_BYTES; i += 8)
		if (word_at(arena, BINS_AT + i))
			return false;
	return word_at(arena, NEXT_AT) == address && word_at(arena, ATTACHED_AT) == 1 && !word_at(arena, SYSTEM_AT);
}

static bool is_in_ring(pid_t pid, uint64_t arena)
{
	uint64_t at = arena;
	for (unsigned i = 0; i < ARENAS_MAX && at; i++)
		if ((at = glibc_next_arena(pid, at)) == arena)
			return true;
	return false;
}

static void find_main_arena(struct glibc *glibc, pid_t pid, const uint8_t *data, size_t size, uint64_t address)
{
	for (size_t offset = 0; !glibc->main_arena && offset + ARENA_BYTES <= size; offset += 16) {
		glibc->is_unused = is_untouched(data + offset, address + offset);
		if (glibc->is_unused || (has_bins(data + offset, address + offset) && is_in_ring(pid, address + offset)))
			glibc->main_arena = address + offset;
	}
}

/* offset: of the bytes in mapped chunks. */
static bool are_parameters(const uint8_t *data, size_t offset, uint64_t top, uint64_t system_bytes)
{
	uint64_t start = word_at(data, offset + 16), bins = word_at(data, offset + 24), largest = word_at(data, offset + 32);
	return word_at(data, offset) <= word_at(data, offset + 8) && start && !(start & 15) && start <= top && top - start <= system_bytes && bins &&
	       bins <= GLIBC_BIN_COUNT && largest && largest <= CACHE_BYTES_MAX && word_at(data, offset + 40) <= UINT16_MAX;
}

static void find_parameters(struct glibc *glibc, pid_t pid, const uint8_t *data, size_t size, uint64_t address)
{
	struct glibc_arena arena;
	uint64_t system_bytes;
	if (glibc->mapped || !glibc->main_arena || !glibc_read(pid, glibc->main_arena, &arena, sizeof(arena)) ||
	    !glibc_read(pid, glibc->main_arena + SYSTEM_AT, &system_bytes, sizeof(system_bytes)))
		return;
	for (size_t offset = 32; offset + 48 <= size && !glibc->mapped; offset += 8) {
		if (!are_parameters(data, offset, arena.top, system_bytes))
			continue;
		glibc->mapped = address + offset;
		glibc->main_start = word_at(data, offset + 16);
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

/* Show all of the image's memory with this right, or without, to one that looks for something. */
static void look_through(struct glibc *glibc, pid_t pid, const struct proc_map *maps, int count, uint64_t base, uint64_t end, bool is_writable, look *look)
{
	for (int i = 0; i < count; i++) {
		uint64_t size = maps[i].high - maps[i].low;
		if (maps[i].low < base || maps[i].high > end || maps[i].permissions[0] != 'r' || (maps[i].permissions[1] == 'w') != is_writable ||
		    size > DATA_BYTES_MAX)
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
	look_through(glibc, pid, maps, count, base, end, false, find_version);
	look_through(glibc, pid, maps, count, base, end, true, find_main_arena);
	look_through(glibc, pid, maps, count, base, end, true, find_parameters);
	free(maps);
	if (!glibc->layout)
		return diag_fail(diag, ENOTSUP, "its C library is not glibc 2.%u to 2.%u", layouts[0].first,
				 layouts[sizeof(layouts) / sizeof(*layouts) - 1].last);
	return 0;
}
