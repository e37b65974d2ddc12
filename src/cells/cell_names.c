/* SPDX-License-Identifier: MIT */
#include "cells/cell_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* NULL: it is a name of the trace. */
static const char *word_of(uint32_t name)
{
	return name == CELL_NO_STACK ? "[no stack]" : name == CELL_SMALLER_STACKS ? "[smaller stacks]" : NULL;
}

/* Not within a character. */
static void name_copy(char text[CELL_NAME_ROOM], const char *from)
{
	size_t length = strlen(from), cut = CELL_NAME_BYTES;
	if (length <= cut) {
		memcpy(text, from, length + 1);
		return;
	}
	while (cut && ((unsigned char)from[cut] & 0xc0) == 0x80)
		cut--;
	snprintf(text, CELL_NAME_ROOM, "%.*s#%016" PRIx64, (int)cut, from, XXH3_64bits(from, length));
}

void cell_name_full(const struct heap_names *names, uint32_t name, char text[CELL_NAME_ROOM])
{
	const char *word = word_of(name);
	if (word) {
		name_copy(text, word);
		return;
	}
	const struct heap_name *row = heap_names_name(names, name);
	if (heap_name_is_offset(row))
		snprintf(text, CELL_NAME_ROOM, "+0x%" PRIx64, row->offset);
	else
		name_copy(text, row->symbol ? row->symbol : row->text);
}

void cell_name_short(const struct heap_names *names, uint32_t name, char text[CELL_NAME_ROOM])
{
	const char *found = word_of(name) ? NULL : heap_names_name(names, name)->short_symbol;
	if (found)
		name_copy(text, found);
	else
		cell_name_full(names, name, text);
}

void cell_name_image(const struct heap_names *names, uint32_t name, char text[CELL_NAME_ROOM])
{
	const char *image = word_of(name) ? NULL : heap_names_name(names, name)->image;
	name_copy(text, image ? image : "");
}

bool cell_name_is(const struct heap_names *names, uint32_t name, const char *key)
{
	char text[CELL_NAME_ROOM];
	cell_name_image(names, name, text);
	size_t length = strlen(text);
	if (strncmp(key, text, length) || key[length] != '!')
		return false;
	cell_name_full(names, name, text);
	return !strcmp(key + length + 1, text);
}

void cell_name_write(const struct heap_names *names, uint32_t name, struct json *json)
{
	static void (*const parts[])(const struct heap_names *, uint32_t, char *) = {cell_name_image, cell_name_short,
										     cell_name_full};
	char text[CELL_NAME_ROOM];
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		parts[i](names, name, text);
		json_text(json, NULL, text);
	}
}

unsigned cell_name_marks(const struct heap_names *names, uint32_t name)
{
	if (word_of(name))
		return CELL_MARK_WORD;
	const struct heap_name *row = heap_names_name(names, name);
	if (row->image)
		return row->is_library ? CELL_MARK_LIBRARY : 0;
	return CELL_MARK_WORD | (strcmp(row->text, "[before the trace]") ? 0 : CELL_MARK_EARLIER);
}
