/* SPDX-License-Identifier: MIT */
#include "base/intern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

static uint32_t intern_new(struct intern *intern, const void *data, size_t size)
{
	assert(intern->count < UINT32_MAX);
	memory_grow(intern->items, intern->count, intern->capacity);
	char *copy = arena_alloc(&intern->arena, 1, size + 1);
	memcpy(copy, data, size);
	intern->items[intern->count] = (struct intern_item){copy, size};
	return intern->count++;
}

uint32_t intern_bytes(struct intern *intern, const void *data, size_t size)
{
	/* Two strings with the same hash are kept apart by trying the next hash. */
	for (uint64_t hash = XXH64(data, size, 0);; hash++) {
		bool added;
		uint32_t *id = map_add(&intern->map, hash, &added);
		if (added)
			return *id = intern_new(intern, data, size);
		const struct intern_item *item = &intern->items[*id];
		if (item->size == size && !memcmp(item->data, data, size))
			return *id;
	}
}

uint32_t intern_text(struct intern *intern, const char *text)
{
	return intern_bytes(intern, text, strlen(text));
}

void intern_fini(struct intern *intern)
{
	map_fini(&intern->map);
	arena_fini(&intern->arena);
	free(intern->items);
	*intern = (struct intern){0};
}
