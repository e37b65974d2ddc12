/* SPDX-License-Identifier: MIT */
#include "inject/recorder_blob.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

extern const unsigned char recorder_elf[], recorder_elf_end[];

const unsigned char *recorder_code(size_t *size)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)recorder_elf;
	const Elf64_Phdr *segment = (const Elf64_Phdr *)(recorder_elf + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++) {
		if (segment[i].p_type == PT_LOAD && (segment[i].p_flags & PF_X)) {
			*size = segment[i].p_filesz;
			return recorder_elf + segment[i].p_offset;
		}
	}
	assert(!"the recorder has code");
	return NULL;
}

uint64_t recorder_symbol(const char *name)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)recorder_elf;
	const Elf64_Shdr *section = (const Elf64_Shdr *)(recorder_elf + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		const Elf64_Sym *symbol = (const Elf64_Sym *)(recorder_elf + section[i].sh_offset);
		const char *names = (const char *)(recorder_elf + section[section[i].sh_link].sh_offset);
		for (size_t j = 0; j < section[i].sh_size / sizeof(*symbol); j++)
			if (strcmp(names + symbol[j].st_name, name) == 0)
				return symbol[j].st_value;
	}
	assert(!"the recorder has the hook");
	return 0;
}
