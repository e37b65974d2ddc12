/* SPDX-License-Identifier: MIT */
/*
 * Each thread has an own copy of the variable. Where it lies is known to the loader only, unless the program itself has
 * it: the loader's answers are words of the image's memory, which its relocations name. They are read by the thread
 * (recorder/context_record.c), since they may come later than the image.
 */
#include "hook/context_symbol.h"

#include <string.h>

static const char name[] = "otel_thread_ctx_v1";

/* The variables of a program lie right below the thread pointer, whose alignment is theirs. Return 0: unknown. */
static uint64_t offset_in_program(const struct elf *elf, uint64_t value)
{
	const Elf64_Phdr *tls = &elf->thread_variables;
	const uint64_t align = tls->p_align ? tls->p_align : 1;
	if (align & (align - 1) || tls->p_vaddr & (align - 1) || tls->p_memsz > UINT32_MAX || value >= tls->p_memsz)
		return 0;
	return value - ((tls->p_memsz + align - 1) & ~(align - 1));
}

/* Take a relocation that tells where the variable is. Others tell more than an index does. */
static void take_relocation(struct hook_context_symbol *found, const Elf64_Rela *row, uint64_t symbol, uint64_t value)
{
	const uint64_t of = ELF64_R_SYM(row->r_info);
	const bool is_own = of ? of == symbol : (uint64_t)row->r_addend == value;
	switch (ELF64_R_TYPE(row->r_info)) {
	case R_X86_64_TPOFF64:
	case R_X86_64_TLSDESC:
		if (is_own)
			*found = (struct hook_context_symbol){ELF64_R_TYPE(row->r_info) == R_X86_64_TPOFF64
								      ? CONTEXT_ACCESS_OFFSET
								      : CONTEXT_ACCESS_DESCRIPTOR,
							      row->r_offset, 0};
		break;
	case R_X86_64_DTPMOD64:
		if ((!of || of == symbol) && found->access == CONTEXT_ACCESS_NONE)
			*found = (struct hook_context_symbol){CONTEXT_ACCESS_INDEX, row->r_offset, value};
		break;
	default:
		break;
	}
}

static void take_relocations(const struct elf *elf, int64_t table_tag, int64_t size_tag, uint64_t symbol,
			     uint64_t value, struct hook_context_symbol *found)
{
	uint64_t table, bytes;
	if (!elf_dynamic_value(elf, table_tag, &table) || !elf_dynamic_value(elf, size_tag, &bytes))
		return;
	const uint8_t *rows = elf_at_address(elf, table, bytes);
	for (uint64_t i = 0; rows && i < bytes / sizeof(Elf64_Rela); i++) {
		Elf64_Rela row;
		memcpy(&row, rows + i * sizeof(row), sizeof(row));
		take_relocation(found, &row, symbol, value);
	}
}

struct hook_context_symbol context_symbol_find(const struct elf *elf, const struct elf_symbols *symbols,
					       bool is_program)
{
	struct hook_context_symbol found = {.access = CONTEXT_ACCESS_NONE};
	if (!elf->thread_variables.p_memsz)
		return found;
	for (uint64_t i = 1; i < symbols->count; i++) {
		const Elf64_Sym symbol = elf_symbol(symbols, i);
		if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF ||
		    strcmp(elf_symbol_name(symbols, &symbol), name) != 0)
			continue;
		if (is_program) {
			found.offset = offset_in_program(elf, symbol.st_value);
			found.access = found.offset ? CONTEXT_ACCESS_PROGRAM : CONTEXT_ACCESS_NONE;
			break;
		}
		take_relocations(elf, DT_RELA, DT_RELASZ, i, symbol.st_value, &found);
		take_relocations(elf, DT_JMPREL, DT_PLTRELSZ, i, symbol.st_value, &found);
		break;
	}
	return found;
}
