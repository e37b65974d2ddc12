/* SPDX-License-Identifier: MIT */
/**
 * An ELF64 x86-64 file's bytes, read without believing any of them. Everything that reads a target's files before or
 * while it runs uses this reader: libelf checks less, and a damaged file must not end the logger. Symbols of reports
 * come by libelf and libdw (src/symbols). Headers in the memory of a running process: inject/remote.h, heapwalk.
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

struct elf {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr header;
	Elf64_Phdr load[ELF_LOAD_MAX];
	uint32_t load_count;
	Elf64_Phdr dynamic, unwind;      /**< PT_DYNAMIC and PT_GNU_EH_FRAME; p_filesz 0: none */
	Elf64_Phdr notes[ELF_NOTES_MAX]; /**< PT_NOTE */
	uint32_t notes_count;
	bool has_interpreter;
	uint64_t interpreter; /**< offset of its path, interpreter_bytes long */
	uint64_t interpreter_bytes;
};

/** Whether a file that begins so is for this processor: 0, or a negative errno with the reason. */
int elf_check_machine(const void *data, size_t size, struct diag *diag);

/** Look at the headers; 0, or a negative errno with the reason (not ELF, another machine, damaged). Only the first
 *  bytes need to be there: what lies beyond size is absent. */
int elf_open(struct elf *elf, const void *data, size_t size, struct diag *diag);

/** size bytes at a place of the file; NULL when they are not all there. */
const void *elf_at_offset(const struct elf *elf, uint64_t offset, uint64_t size);

/** size bytes at an address of the image, as the file has them; NULL when they are not in one loaded part. */
const void *elf_at_address(const struct elf *elf, uint64_t address, uint64_t size);

/** Bytes of executable code in the file from address to the end of its part, 0 when there is none. */
uint64_t elf_code_bytes(const struct elf *elf, uint64_t address);

/** Where the executable part of the file that holds address begins; 0 when there is none. */
uint64_t elf_code_start(const struct elf *elf, uint64_t address);

/** The value of a tag of the dynamic section; false when it is not there. */
bool elf_dynamic_value(const struct elf *elf, int64_t tag, uint64_t *value);

/** The symbols that the loader sees, found without section headers; none is an empty table. */
struct elf_symbols elf_dynamic_symbols(const struct elf *elf);

/** .symtab; an empty table when the file was stripped. */
struct elf_symbols elf_full_symbols(const struct elf *elf);

/** A note: its type, its description, and the address of that in the image. */
struct elf_note {
	uint32_t type, size;
	uint64_t address;
	const uint8_t *description;
};

/** The next note of this owner: place is {0} to begin with. False when there is none. */
struct elf_note_place {
	uint32_t segment;
	uint64_t offset;
};
bool elf_next_note(const struct elf *elf, const char *owner, struct elf_note_place *place, struct elf_note *note);

/** Find the section of this name by the section headers. Return false if there is none, as in a file without such
    headers. Its bytes may lie beyond the file. */
bool elf_section(const struct elf *elf, const char *name, Elf64_Shdr *section);

/** Return the symbol at `index`, which is below symbols->count. */
Elf64_Sym elf_symbol(const struct elf_symbols *symbols, uint64_t index);

/** A symbol's name, terminated within its table; "" when it has none. */
const char *elf_symbol_name(const struct elf_symbols *symbols, const Elf64_Sym *symbol);

/** The value that the loader puts at an address of the image by a relative relocation, else what the file has there; 0:
    none. */
uint64_t elf_pointer_at(const struct elf *elf, uint64_t address);

/** The beginning of the last function at or before address that the unwind table names; 0: not known. */
uint64_t elf_unwind_start(const struct elf *elf, uint64_t address);

#endif
