/* SPDX-License-Identifier: MIT */
#include "hook/python_arenas.h"

#include <string.h>

#include "arch/code.h"
#include "hook/elf_file.h"

enum { RUNTIME_FIRST = 12, WORD = sizeof(uint64_t), TAKE_BYTES = 64 };

/* Where the table lies in _PyRuntime, by minor version from RUNTIME_FIRST on. */
static const uint16_t table_offsets[] = {0x168, 0x3d0, 0x480};

/* Return the address of the table: before 3.12 it is a variable, which the getter reads first. */
static uint64_t table_address(const struct elf *elf, uint32_t version, uint64_t getter, uint64_t runtime)
{
	struct code code;
	uint32_t row = version - RUNTIME_FIRST;
	if (version >= RUNTIME_FIRST)
		return runtime && row < sizeof(table_offsets) / sizeof(*table_offsets) ? runtime + table_offsets[row]
										       : 0;
	uint64_t available = getter ? elf_code_bytes(elf, getter) : 0;
	const uint8_t *bytes = available ? elf_at_address(elf, getter, available) : NULL;
	for (unsigned i = 0; bytes && i < 4 && code_decode(&code, bytes, available, getter); i++) {
		if (code.kind == CODE_RELATIVE)
			return code.target;
		bytes += code.length;
		available -= code.length;
		getter += code.length;
	}
	return 0;
}

static bool has_bytes(const uint8_t *code, uint64_t count, const uint8_t *bytes, uint64_t bytes_count)
{
	for (uint64_t i = 0; i + bytes_count <= count; i++)
		if (!memcmp(code + i, bytes, bytes_count))
			return true;
	return false;
}

/* Return whether a function calls mmap() for private memory without a file that can be written. */
static bool maps_memory(const struct elf *elf, uint64_t function)
{
	static const uint8_t protection[] = {0xba, 3, 0, 0, 0}, flags[] = {0xb9, 0x22, 0, 0, 0};
	uint64_t available = elf_code_bytes(elf, function), count = available < TAKE_BYTES ? available : TAKE_BYTES;
	const uint8_t *code = count ? elf_at_address(elf, function, count) : NULL;
	return code && has_bytes(code, count, protection, sizeof(protection)) &&
	       has_bytes(code, count, flags, sizeof(flags));
}

bool python_arenas_find(const struct elf *elf, uint32_t version, uint64_t getter, uint64_t runtime, uint64_t *take,
			uint64_t *give_back)
{
	uint64_t table = table_address(elf, version, getter, runtime);
	if (!table || elf_pointer_at(elf, table))
		return false;
	*take = elf_pointer_at(elf, table + WORD);
	*give_back = elf_pointer_at(elf, table + 2 * WORD);
	return maps_memory(elf, *take) && elf_code_bytes(elf, *give_back);
}
