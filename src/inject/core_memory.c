/* SPDX-License-Identifier: MIT */
#include "inject/core_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bisect.h"
#include "base/memory.h"

enum { PAGE = 4096, COPY_BYTES = 1 << 20 };

static size_t place_of(const struct core_memory *memory, uint64_t address)
{
	size_t place;
	BISECT(place, memory->count, i, memory->places[i].high <= address);
	return place;
}

static void place_insert(struct core_memory *memory, size_t at, uint64_t low, uint64_t high)
{
	memory_grow(memory->places, memory->count, memory->capacity);
	memmove(&memory->places[at + 1], &memory->places[at], (memory->count - at) * sizeof(*memory->places));
	memory->places[at] = (struct core_place){low, high, memory->end};
	memory->count++;
	memory->end += high - low;
}

void core_memory_place(struct core_memory *memory, uint64_t low, uint64_t high)
{
	for (size_t i = place_of(memory, low); low < high; low = memory->places[i++].high) {
		const bool is_last = i == memory->count || memory->places[i].low >= high;
		if (is_last || memory->places[i].low > low)
			place_insert(memory, i, low, is_last ? high : memory->places[i].low);
	}
}

void core_memory_each(struct core_memory *memory, uint64_t low, uint64_t high,
		      void (*visit)(void *cookie, const struct core_place *place), void *cookie)
{
	for (size_t i = place_of(memory, low); i < memory->count && memory->places[i].low < high; i++) {
		const struct core_place *place = &memory->places[i];
		const uint64_t from = place->low > low ? place->low : low, to = place->high < high ? place->high : high;
		visit(cookie, &(struct core_place){from, to, place->offset + (from - place->low)});
	}
}

/* ---- writing ---- */

void core_memory_write(struct core_memory *memory, const void *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;
	while (done < size && !memory->error) {
		const ssize_t put = pwrite(memory->to, (const char *)bytes + done, size - done, (off_t)(offset + done));
		if (put < 0 && errno != EINTR)
			memory->error = -errno;
		done += put > 0 ? (size_t)put : 0;
	}
}

void core_memory_delay(struct core_memory *memory, size_t bytes)
{
	memory->delayed_copy = memory_resize(NULL, bytes + 1, 1);
	memory->delayed_room = bytes;
	/* Its pages are there when they are needed. */
	memset(memory->delayed_copy, 0, bytes);
}

void core_memory_write_delayed(struct core_memory *memory)
{
	size_t at = 0;
	for (size_t i = 0; i < memory->delayed_count; at += memory->delayed[i++].size)
		core_memory_write(memory, memory->delayed_copy + at, memory->delayed[i].size,
				  memory->delayed[i].offset);
	free(memory->delayed_copy);
	memory->delayed_copy = NULL;
	memory->delayed_count = memory->delayed_bytes = 0;
}

/* ---- copying ---- */

static void place_copy(void *cookie, const struct core_place *place)
{
	struct core_memory *memory = cookie;
	for (uint64_t low = place->low; low < place->high && !memory->error;) {
		const size_t size = place->high - low < COPY_BYTES ? (size_t)(place->high - low) : COPY_BYTES;
		const uint64_t offset = place->offset + (low - place->low);
		const bool is_delayed = memory->delayed_copy && memory->delayed_room - memory->delayed_bytes >= size;
		char *copy = is_delayed ? memory->delayed_copy + memory->delayed_bytes : memory->copy;
		const ssize_t got = pread(memory->from, copy, size, (off_t)low);
		if (got < 0 && errno == EINTR)
			continue;
		/* Pages that cannot be read, such as those behind the end of a mapped file, stay holes. */
		low += got > 0 ? (uint64_t)got : PAGE;
		if (got > 0 && is_delayed) {
			memory_grow(memory->delayed, memory->delayed_count, memory->delayed_capacity);
			memory->delayed[memory->delayed_count++] = (struct core_delayed){offset, (size_t)got};
			memory->delayed_bytes += (size_t)got;
		} else if (got > 0) {
			core_memory_write(memory, copy, (size_t)got, offset);
		}
	}
}

void core_memory_copy(struct core_memory *memory, uint64_t low, uint64_t high)
{
	if (!memory->copy)
		memory->copy = memory_resize(NULL, COPY_BYTES, 1);
	core_memory_each(memory, low, high, place_copy, memory);
}

static void place_clear(void *cookie, const struct core_place *place)
{
	static const char zeros[PAGE];
	struct core_memory *memory = cookie;
	const uint64_t size = place->high - place->low;
	const off_t data = lseek(memory->to, (off_t)place->offset, SEEK_DATA);
	if ((data < 0 && errno == ENXIO) || (data >= 0 && (uint64_t)data >= place->offset + size))
		return;
	if (!fallocate(memory->to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)place->offset, (off_t)size))
		return;
	for (uint64_t at = 0; at < size && !memory->error; at += PAGE)
		core_memory_write(memory, zeros, size - at < PAGE ? (size_t)(size - at) : PAGE, place->offset + at);
}

void core_memory_clear(struct core_memory *memory, uint64_t low, uint64_t high)
{
	core_memory_each(memory, low, high, place_clear, memory);
}

void core_memory_fini(struct core_memory *memory)
{
	free(memory->places);
	free(memory->copy);
	free(memory->delayed_copy);
	free(memory->delayed);
	*memory = (struct core_memory){.from = -1, .to = -1};
}
