/* SPDX-License-Identifier: MIT */
/**
 * Reading of an ELF64 file for this processor. The bytes are hostile: every offset is checked. Everything that reads a
 * target's files before or while it runs uses this reader: libelf checks less, and a damaged file must not end the
 * logger. Symbols of reports come by libelf and libdw (src/symbols). Headers in the memory of a running process:
 * inject/remote.h, heapwalk.
 */
#ifndef XHEAP_HOOK_ELF_FILE_H
#define XHEAP_HOOK_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

enum { ELF_LOAD_MAX = 32, ELF_NOTES_MAX = 8 };

/** A table of symbols and its names. */
struct elf_symbols {
	const uint8_t *entries;
	uint64_t count;
	const char *strings;
	uint64_t string_bytes;
};

/** An opened file. The bytes stay the caller's and must outlive it. */
struct elf {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr header;
	Elf64_Phdr load[ELF_LOAD_MAX];
	uint32_t load_count;
	Elf64_Phdr dynamic, unwind;      /**< PT_DYNAMIC and PT_GNU_EH_FRAME; p_filesz 0: none */
	Elf64_Phdr thread_variables;     /**< PT_TLS; p_memsz 0: none */
	Elf64_Phdr notes[ELF_NOTES_MAX]; /**< PT_NOTE */
	uint32_t notes_count;
	bool has_interpreter;
	uint64_t interpreter; /**< offset of its path, interpreter_bytes long */
	uint64_t interpreter_bytes;
};

/** Check by a file's first bytes that it is for this processor. Return 0, or a negative errno with the reason. */
int elf_check_machine(const void *data, size_t size, struct diag *diag);

/** Read the headers. Return 0, or a negative errno with the reason (not ELF, another machine, damaged). The first bytes
    of a file suffice: everything beyond `size` counts as absent. */
int elf_open(struct elf *elf, const void *data, size_t size, struct diag *diag);

/** Return `size` bytes at an offset of the file; NULL unless all of them exist. */
const void *elf_at_offset(const struct elf *elf, uint64_t offset, uint64_t size);

/** Return `size` bytes of the file by their address in the image; NULL unless one loaded segment has them all. */
const void *elf_at_address(const struct elf *elf, uint64_t address, uint64_t size);

/** Return the size of the executable code from `address` to the end of its segment in the file; 0: there is none. */
uint64_t elf_code_bytes(const struct elf *elf, uint64_t address);

/** Return the address at which the file's executable segment around `address` begins; 0: there is none. */
uint64_t elf_code_start(const struct elf *elf, uint64_t address);

/** Get the value of a tag of the dynamic section. Return false if the section has no such tag. */
bool elf_dynamic_value(const struct elf *elf, int64_t tag, uint64_t *value);

/** Return the symbols that the loader uses, found without section headers; an empty table if there are none. */
struct elf_symbols elf_dynamic_symbols(const struct elf *elf);

/** Return .symtab; an empty table if the file was stripped. */
struct elf_symbols elf_full_symbols(const struct elf *elf);

/** A note: its type, its description, and the address of that in the image. */
struct elf_note {
	uint32_t type, size;
	uint64_t address;
	const uint8_t *description;
};

/** The position of a search for notes; {0} begins it. */
struct elf_note_place {
	uint32_t segment;
	uint64_t offset;
};
/** Find the next note of this owner and advance *place. Return false if there is none. */
bool elf_next_note(const struct elf *elf, const char *owner, struct elf_note_place *place, struct elf_note *note);

/** Find the section of this name by the section headers. Return false if there is none, as in a file without such
    headers. Its bytes may lie beyond the file. */
bool elf_section(const struct elf *elf, const char *name, Elf64_Shdr *section);

/** Return the symbol at `index`, which is below symbols->count. */
Elf64_Sym elf_symbol(const struct elf_symbols *symbols, uint64_t index);

/** Return a symbol's name, which ends within its table; "" if it has none. */
const char *elf_symbol_name(const struct elf_symbols *symbols, const Elf64_Sym *symbol);

/** Return the pointer at an address of the image: the value of a relative relocation, otherwise the file's bytes; 0:
    none. */
uint64_t elf_pointer_at(const struct elf *elf, uint64_t address);

/** Return the start of the last function at or before `address` in the unwind table; 0: unknown. */
uint64_t elf_unwind_start(const struct elf *elf, uint64_t address);

/** Return the start of the first function behind `address` in the unwind table; 0: unknown. */
uint64_t elf_unwind_next(const struct elf *elf, uint64_t address);

#endif
