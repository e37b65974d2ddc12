/* SPDX-License-Identifier: MIT */
/** Byte strings as small numbers: equal strings have one id, counted from 0. Without memory the work is given up
    (base/memory.h). */
#ifndef XHEAP_BASE_INTERN_H
#define XHEAP_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"

struct intern_item {
	const char *data; /**< `size` bytes and a NUL */
	size_t size;
};

/** The strings. Zero it to begin. */
struct intern {
	struct arena arena;
	struct map map;
	struct intern_item *items;
	uint32_t count;
	size_t capacity;
};

/** Return the id of these bytes, copying them if they are new. */
uint32_t intern_bytes(struct intern *intern, const void *data, size_t size);

/** Return the id of this text. */
uint32_t intern_text(struct intern *intern, const char *text);

/** Free the strings. */
void intern_fini(struct intern *intern);

#endif
