/* SPDX-License-Identifier: MIT */
#include "symbols/function_ranges.h"

#include <gelf.h>
#include <string.h>

#include "base/bisect.h"

enum { TABLE_VERSION = 1, TABLE_HEAD_BYTES = 12, TABLE_ROW_BYTES = 8 };

/* Encodings of pointers (DWARF, as the Linux Standard Base extends it). */
enum {
	POINTER_UDATA4 = 0x03,
	POINTER_SDATA4 = 0x0b,
	POINTER_FORM = 0x0f,
	POINTER_NONE = 0xff,
	POINTER_TABLE_ROW = 0x3b /* relative to the table, in 4 bytes */
};

static bool read_u32(const char *bytes, size_t size, size_t offset, uint32_t *number)
{
	if (offset > size || size - offset < sizeof(*number))
		return false;
	memcpy(number, bytes + offset, sizeof(*number));
	return true;
}

/* The file's offset of a link-time address, with everything of its segment behind it in *size. */
static bool file_offset(Elf *elf, unsigned type, uint64_t address, uint64_t *offset, uint64_t *size)
{
	size_t count;
	GElf_Phdr segment;
	if (elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != type)
			continue;
		if (type == PT_LOAD && (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz))
			continue;
		uint64_t within = type == PT_LOAD ? address - segment.p_vaddr : 0;
		*offset = segment.p_offset + within;
		*size = segment.p_filesz - within;
		return true;
	}
	return false;
}

static uint64_t table_address(Elf *elf)
{
	size_t count;
	GElf_Phdr segment;
	for (size_t i = 0; !elf_getphdrnum(elf, &count) && i < count; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_GNU_EH_FRAME)
			return segment.p_vaddr;
	return 0;
}

void function_ranges_init(struct function_ranges *ranges, Elf *elf)
{
	uint64_t offset, size;
	uint32_t count;
	*ranges = (struct function_ranges){.elf = elf};
	ranges->file = elf_rawfile(elf, &ranges->file_size);
	if (!ranges->file || !file_offset(elf, PT_GNU_EH_FRAME, 0, &offset, &size) || offset > ranges->file_size ||
	    size > ranges->file_size - offset || size < TABLE_HEAD_BYTES)
		return;
	const char *table = ranges->file + offset;
	/* Version, and encodings of the pointer to .eh_frame, of the number of rows, and of the rows. */
	bool is_known = table[0] == TABLE_VERSION &&
			((table[1] & POINTER_FORM) == POINTER_SDATA4 || (table[1] & POINTER_FORM) == POINTER_UDATA4) &&
			table[2] == POINTER_UDATA4 && table[3] == POINTER_TABLE_ROW;
	if (!is_known || !read_u32(table, size, TABLE_HEAD_BYTES - sizeof(count), &count) ||
	    count > (size - TABLE_HEAD_BYTES) / TABLE_ROW_BYTES)
		return;
	ranges->base = table_address(elf);
	ranges->rows = table + TABLE_HEAD_BYTES;
	ranges->row_count = count;
}

/* Column 0 or 1 of a row, as an address. */
static uint64_t row_address(const struct function_ranges *ranges, uint32_t row, unsigned column)
{
	int32_t distance;
	memcpy(&distance, ranges->rows + (size_t)row * TABLE_ROW_BYTES + column * sizeof(distance), sizeof(distance));
	return ranges->base + (uint64_t)(int64_t)distance;
}

/* Skip a number of 7 bits a byte. */
static size_t skip_leb128(const char *bytes, size_t size, size_t at)
{
	while (at < size && bytes[at] & 0x80)
		at++;
	return at + 1;
}

/* The encoding of addresses in the unwind data of a function, from the entry that it shares with others. */
static unsigned address_encoding(const char *bytes, size_t size)
{
	enum { LENGTH_AND_ID = 8, VERSION_MAX = 4 };
	if (size < LENGTH_AND_ID + 2)
		return POINTER_NONE;
	const char *letters = bytes + LENGTH_AND_ID + 1, *end = memchr(letters, 0, size - LENGTH_AND_ID - 1);
	unsigned version = (unsigned char)bytes[LENGTH_AND_ID];
	if (!end || letters[0] != 'z' || version > VERSION_MAX)
		return POINTER_NONE;
	size_t at = (size_t)(end + 1 - bytes) + (version == VERSION_MAX ? 2 : 0);
	/* Code and data alignment, the return address's register, the length of the letters' data. */
	for (int i = 0; i < 4; i++)
		at = i == 2 && version == 1 ? at + 1 : skip_leb128(bytes, size, at);
	for (const char *letter = letters + 1; letter < end && at < size; letter++) {
		if (*letter == 'R')
			return (unsigned char)bytes[at];
		/* 'L' and 'P' have an encoding; only 'P' has a pointer behind it. */
		unsigned form = (unsigned char)bytes[at] & POINTER_FORM;
		bool is_wide = *letter == 'P' && form != POINTER_SDATA4 && form != POINTER_UDATA4;
		if ((*letter != 'L' && *letter != 'P' && *letter != 'S') || is_wide)
			return POINTER_NONE;
		at += *letter == 'L' ? 1 : *letter == 'P' ? 1 + sizeof(uint32_t) : 0;
	}
	return 0;
}

/* The size of the function whose unwind data lies at the address; 0: unknown. */
static uint64_t function_size(const struct function_ranges *ranges, uint64_t address)
{
	uint64_t offset, size;
	uint32_t length, back, count;
	if (!file_offset(ranges->elf, PT_LOAD, address, &offset, &size) || offset > ranges->file_size ||
	    size > ranges->file_size - offset || !read_u32(ranges->file, ranges->file_size, offset, &length) ||
	    !read_u32(ranges->file, ranges->file_size, offset + 4, &back) || !back || back > offset + 4)
		return 0;
	const char *shared = ranges->file + offset + 4 - back;
	unsigned form = address_encoding(shared, ranges->file_size - (size_t)(shared - ranges->file)) & POINTER_FORM;
	if ((form != POINTER_SDATA4 && form != POINTER_UDATA4) ||
	    !read_u32(ranges->file, ranges->file_size, offset + 12, &count))
		return 0;
	return count;
}

bool function_ranges_find(const struct function_ranges *ranges, uint64_t address, uint64_t *low, uint64_t *high)
{
	uint32_t place;
	/* The rows are sorted; the last one that begins at the address or before it. */
	BISECT(place, ranges->row_count, i, row_address(ranges, (uint32_t)i, 0) <= address);
	if (!place)
		return false;
	*low = row_address(ranges, place - 1, 0);
	*high = *low + function_size(ranges, row_address(ranges, place - 1, 1));
	return *low <= address && address < *high;
}
