/* SPDX-License-Identifier: MIT */
/** What functions are called in answers. */
#ifndef XHEAP_CELLS_CELL_NAMES_H
#define XHEAP_CELLS_CELL_NAMES_H

#include "base/json.h"
#include "query/frame_names.h"

/** In place of a name of the trace: words that stand for stacks without frames of their own. */
#define CELL_NO_STACK (UINT32_MAX - 1)
#define CELL_SMALLER_STACKS (UINT32_MAX - 2)

/** Longer names are cut, and end with their hash: 20,000 of them must not fill the memory. */
enum { CELL_NAME_BYTES = 1000, CELL_NAME_ROOM = CELL_NAME_BYTES + 24 };

/** Bits of a function's marks. */
enum { CELL_MARK_LIBRARY = 1, CELL_MARK_WORD = 2, CELL_MARK_EARLIER = 4 };

/** Write the full name of a function, or a word, or the offset of a function without a name: "+0x7504". */
void cell_name_full(const struct heap_names *names, uint32_t name, char text[CELL_NAME_ROOM]);

/** Write the short name of a function; the full one if there is none. */
void cell_name_short(const struct heap_names *names, uint32_t name, char text[CELL_NAME_ROOM]);

/** Write the file name of its image; "": it has none. */
void cell_name_image(const struct heap_names *names, uint32_t name, char text[CELL_NAME_ROOM]);

/** Return whether a function's key is this: `image!full name`. */
bool cell_name_is(const struct heap_names *names, uint32_t name, const char *key);

/** Write its image, short name and full name as three elements of an array. */
void cell_name_write(const struct heap_names *names, uint32_t name, struct json *json);

/** Return its marks. */
unsigned cell_name_marks(const struct heap_names *names, uint32_t name);

#endif
