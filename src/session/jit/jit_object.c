/* SPDX-License-Identifier: MIT */
#include "session/jit/jit_object.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

enum { ADDRESS_BITS = 47, NUMBERS_BYTES = 36 /* of a line: two numbers, their spaces, and its end */ };

bool jit_memory_read(struct jit_memory *memory, uint64_t address, void *to, size_t bytes)
{
	if (!memory->reads_left || address > INT64_MAX)
		return false;
	memory->reads_left--;
	return pread(memory->fd, to, bytes, (off_t)address) == (ssize_t)bytes;
}

/* An ELF file in memory. */
struct jit_object {
	struct jit_memory *memory;
	uint64_t address, size;
	Elf64_Ehdr header;
	Elf64_Shdr symbols, names; /* sections */
};

static bool object_read(const struct jit_object *object, uint64_t offset, void *to, size_t bytes)
{
	return offset <= object->size && bytes <= object->size - offset &&
	       jit_memory_read(object->memory, object->address + offset, to, bytes);
}

static bool section_read(const struct jit_object *object, uint32_t index, Elf64_Shdr *section)
{
	return index < object->header.e_shnum && object->header.e_shoff <= object->size &&
	       object_read(object, object->header.e_shoff + index * sizeof(*section), section, sizeof(*section));
}

/* Read the headers, and find the symbols. */
static bool object_open(struct jit_object *object)
{
	const Elf64_Ehdr *header = &object->header;
	if (!object_read(object, 0, &object->header, sizeof(*header)) || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_shentsize != sizeof(Elf64_Shdr))
		return false;
	for (uint32_t i = 1; section_read(object, i, &object->symbols); i++)
		if (object->symbols.sh_type == SHT_SYMTAB)
			return section_read(object, object->symbols.sh_link, &object->names);
	return false;
}

/* Get the code of a symbol. Return false if it has none. */
static bool code_of(const struct jit_object *object, const Elf64_Sym *symbol, uint64_t *start, uint64_t *size)
{
	Elf64_Shdr section;
	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
	    !section_read(object, symbol->st_shndx, &section))
		return false;
	/* The runtime has written where it has put the section. */
	uint64_t offset = symbol->st_value - (object->header.e_type == ET_REL ? 0 : section.sh_addr);
	*start = section.sh_addr + offset;
	*size = symbol->st_size ? symbol->st_size : section.sh_size - offset;
	return offset < section.sh_size && *size && !(*start >> ADDRESS_BITS) &&
	       *size <= (UINT64_C(1) << ADDRESS_BITS) - *start;
}

static void put_number(struct jit_lines *lines, uint64_t number)
{
	int shift = 60;
	while (shift && !(number >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		lines->text[lines->bytes++] = "0123456789abcdef"[number >> shift & 15];
	lines->text[lines->bytes++] = ' ';
}

/* Read at most so many bytes of a name. Return how many it has. */
static size_t name_read(const struct jit_object *object, uint64_t at, char *name, size_t most)
{
	const Elf64_Shdr *names = &object->names;
	if (at >= names->sh_size || names->sh_offset > object->size || at >= object->size - names->sh_offset)
		return 0;
	uint64_t offset = names->sh_offset + at, left = object->size - offset;
	most = most < names->sh_size - at ? most : names->sh_size - at;
	most = most < left ? most : left;
	return object_read(object, offset, name, most) ? strnlen(name, most) : 0;
}

static void put_line(const struct jit_object *object, const Elf64_Sym *symbol, struct jit_lines *lines)
{
	uint64_t start, size;
	char name[JIT_LINE_BYTES - NUMBERS_BYTES];
	if (!code_of(object, symbol, &start, &size))
		return;
	size_t bytes = name_read(object, symbol->st_name, name, sizeof(name));
	if (!bytes)
		return;
	put_number(lines, start);
	put_number(lines, size);
	for (size_t i = 0; i < bytes; i++)
		lines->text[lines->bytes++] = name[i] == '\n' ? '?' : name[i];
	lines->text[lines->bytes++] = '\n';
}

uint32_t jit_object_read(struct jit_memory *memory, uint64_t address, uint64_t size, uint32_t from,
			 struct jit_lines *lines)
{
	enum { READS_OF_SYMBOL = 3 };
	struct jit_object object = {.memory = memory, .address = address, .size = size};
	Elf64_Sym symbol;
	if (!object_open(&object) || object.symbols.sh_offset > size)
		return 0;
	uint64_t count = object.symbols.sh_size / sizeof(symbol);
	count = count < UINT32_MAX ? count : UINT32_MAX;
	/* Symbol 0 is none. */
	for (uint32_t i = from ? from : 1; i < count; i++) {
		if (memory->reads_left < READS_OF_SYMBOL || lines->room - lines->bytes < JIT_LINE_BYTES)
			return i;
		if (!object_read(&object, object.symbols.sh_offset + i * sizeof(symbol), &symbol, sizeof(symbol)))
			return 0;
		put_line(&object, &symbol, lines);
	}
	return 0;
}
