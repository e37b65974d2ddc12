/* SPDX-License-Identifier: MIT */
#include "jit_entries.h"

#include <elf.h>

#include "expect.h"

enum { MANY = 1000000, DAMAGED = 2000, NAME_BYTES = 256, PAGE = 4096 };

/* As gdb's manual has them. */
struct jit_code_entry {
	struct jit_code_entry *next_entry, *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version, action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};

extern struct jit_descriptor __jit_debug_descriptor;
struct jit_descriptor __jit_debug_descriptor = {1, 0, NULL, NULL};

/* A code object, as compilers make it, but for the address of its code. */
struct object {
	Elf64_Ehdr header;
	enum { SECTION_NONE, SECTION_CODE, SECTION_SYMBOLS, SECTION_NAMES, SECTION_COUNT } none;
	Elf64_Shdr section[SECTION_COUNT];
	Elf64_Sym symbol[2];
	char name[NAME_BYTES];
};

static struct object *object_make(uint64_t start, uint64_t size, const char *name)
{
	struct object *object = calloc(1, sizeof(*object));
	EXPECT(object);
	memcpy(object->header.e_ident, ELFMAG, SELFMAG);
	object->header.e_ident[EI_CLASS] = ELFCLASS64;
	object->header.e_ident[EI_DATA] = ELFDATA2LSB;
	object->header.e_type = ET_REL;
	object->header.e_machine = EM_X86_64;
	object->header.e_shentsize = sizeof(Elf64_Shdr);
	object->header.e_shnum = SECTION_COUNT;
	object->header.e_shoff = offsetof(struct object, section);
	object->section[SECTION_CODE] =
		(Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = start, .sh_size = size};
	object->section[SECTION_SYMBOLS] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
							.sh_offset = offsetof(struct object, symbol),
							.sh_size = sizeof(object->symbol),
							.sh_link = SECTION_NAMES,
							.sh_entsize = sizeof(Elf64_Sym)};
	object->section[SECTION_NAMES] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct object, name), .sh_size = NAME_BYTES};
	object->symbol[1] = (Elf64_Sym){.st_name = 1,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = SECTION_CODE,
					.st_size = size};
	snprintf(object->name + 1, NAME_BYTES - 1, "%s", name);
	return object;
}

static void entry_link(struct jit_code_entry *entry, const struct object *object)
{
	*entry = (struct jit_code_entry){
		.symfile_addr = (const char *)object,
		.symfile_size = sizeof(*object),
		.next_entry = __jit_debug_descriptor.first_entry,
	};
	if (entry->next_entry)
		entry->next_entry->prev_entry = entry;
	__jit_debug_descriptor.relevant_entry = __jit_debug_descriptor.first_entry = entry;
	__jit_debug_descriptor.action_flag = 1;
}

void entry_add(uint64_t start, uint64_t size, const char *name)
{
	struct jit_code_entry *entry = malloc(sizeof(*entry));
	EXPECT(entry);
	entry_link(entry, object_make(start, size, name));
}

void entry_remove(void)
{
	struct jit_code_entry *entry = __jit_debug_descriptor.first_entry;
	__jit_debug_descriptor.first_entry = entry->next_entry;
	free((void *)(uintptr_t)entry->symfile_addr);
	free(entry);
}

void entries_end(const char *how)
{
	struct jit_code_entry *last = __jit_debug_descriptor.first_entry;
	while (last->next_entry)
		last = last->next_entry;
	if (!strcmp(how, "circle"))
		last->next_entry = __jit_debug_descriptor.first_entry;
	if (!strcmp(how, "wild"))
		last->next_entry = (struct jit_code_entry *)(uintptr_t)0xfffffffffffffff0;
	uint32_t count = !strcmp(how, "many") ? MANY : !strcmp(how, "damaged") ? DAMAGED : 0;
	struct jit_code_entry *entries = calloc(count + 1, sizeof(*entries));
	struct object *object = object_make(PAGE, PAGE, "another");
	EXPECT(entries && object);
	for (uint32_t i = 0; i < count; i++) {
		if (count == DAMAGED) {
			struct object *damaged = object_make(PAGE + i, PAGE, "another");
			for (int j = 0; j < 4; j++)
				((unsigned char *)damaged)[(i * 31 + (unsigned)j * 977) % sizeof(*damaged)] ^=
					(unsigned char)(1u << (i + (unsigned)j) % 8 | (i & 1 ? 0xff : 0));
			object = damaged;
		}
		entry_link(&entries[i], object);
	}
}
