/* SPDX-License-Identifier: MIT */
#include "session/jit/jitdump.h"

#include <string.h>

enum {
	MAGIC = 0x4a695444,
	VERSION = 1,
	HEAD_LEAST = 40,
	HEAD_MOST = 4096,
	LOAD_FIXED = 56,
	MOVE_FIXED = 64,
	LINES_FIXED = 32,
	LINE_FIXED = 16, /* address, line, discriminator; the file's name follows */
	ADDRESS_BITS = 47
};

static uint32_t get_32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t get_64(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

size_t jitdump_head(const uint8_t *bytes, size_t size)
{
	if (size < HEAD_LEAST || get_32(bytes) != MAGIC || get_32(bytes + 4) != VERSION)
		return 0;
	uint32_t total = get_32(bytes + 8);
	return total >= HEAD_LEAST && total <= HEAD_MOST ? total : 0;
}

static bool is_code(uint64_t start, uint64_t size)
{
	return size && !(start >> ADDRESS_BITS) && size <= (UINT64_C(1) << ADDRESS_BITS) - start;
}

/* Code that is no code of a program has a record that counts for nothing. */
static void load_read(const uint8_t *bytes, size_t size, struct jitdump_record *record)
{
	const uint8_t *end = memchr(bytes + LOAD_FIXED, 0, size - LOAD_FIXED);
	record->start = get_64(bytes + 32);
	record->size = get_64(bytes + 40);
	record->name = LOAD_FIXED;
	record->name_bytes = end ? (size_t)(end - bytes) - LOAD_FIXED : size - LOAD_FIXED;
	record->kind = is_code(record->start, record->size) ? JITDUMP_LOAD : JITDUMP_OTHER;
}

static void move_read(const uint8_t *bytes, struct jitdump_record *record)
{
	record->old_start = get_64(bytes + 32);
	record->start = get_64(bytes + 40);
	record->size = get_64(bytes + 48);
	record->kind = is_code(record->start, record->size) ? JITDUMP_MOVE : JITDUMP_OTHER;
}

bool jitdump_read(const uint8_t *bytes, size_t size, struct jitdump_record *record)
{
	enum { ID_LOAD, ID_MOVE, ID_LINES, ID_COUNT };
	static const uint32_t fixed[ID_COUNT] = {LOAD_FIXED, MOVE_FIXED, LINES_FIXED};
	if (size < JITDUMP_HEAD_BYTES)
		return false;
	uint32_t id = get_32(bytes), total = get_32(bytes + 4);
	*record = (struct jitdump_record){.kind = JITDUMP_OTHER, .bytes = total};
	if (total < JITDUMP_HEAD_BYTES)
		return false;
	if (id >= ID_COUNT || total < fixed[id])
		return true;
	size = size < total ? size : total;
	if (size < total && size < JITDUMP_RECORD_BYTES)
		return false;
	if (id == ID_LOAD) {
		load_read(bytes, size, record);
	} else if (id == ID_MOVE) {
		move_read(bytes, record);
	} else if (id == ID_LINES) {
		record->kind = JITDUMP_LINES;
		record->start = get_64(bytes + 16);
	}
	return true;
}

bool jitdump_line(const uint8_t *bytes, size_t size, uint64_t address, size_t *file, uint32_t *line)
{
	uint64_t best = 0;
	size_t name = 0, at = LINES_FIXED;
	uint64_t count = size >= LINES_FIXED ? get_64(bytes + 24) : 0;
	bool is_found = false;
	for (uint64_t i = 0; i < count && size - at > LINE_FIXED; i++) {
		uint64_t of = get_64(bytes + at);
		uint32_t number = get_32(bytes + at + 8);
		const uint8_t *text = bytes + at + LINE_FIXED, *end = memchr(text, 0, size - at - LINE_FIXED);
		if (!end)
			break;
		/* A name of the byte 0xff alone is that of the line before. */
		if (text[0] != 0xff || text[1])
			name = (size_t)(text - bytes);
		if (of <= address && of >= best && name && number <= INT32_MAX) {
			best = of;
			*file = name;
			*line = number;
			is_found = true;
		}
		at = (size_t)(end - bytes) + 1;
		if (at > size)
			break;
	}
	return is_found;
}
