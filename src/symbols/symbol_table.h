/* SPDX-License-Identifier: MIT */
/** The functions that an image's symbol tables name. */
#ifndef XHEAP_SYMBOLS_SYMBOL_TABLE_H
#define XHEAP_SYMBOLS_SYMBOL_TABLE_H

#include <libelf.h>
#include <stdbool.h>

#include "base/arena.h"
#include "symbols/spans.h"

/** Addresses that hold code: executable sections, or segments where there are no sections. */
struct table_code {
	uint64_t low, high;
};

struct table_symbol {
	const char *name; /**< in the file's memory or the table's */
	uint64_t address, size;
	bool is_local, is_typed;
};

/** Zero it to begin. */
struct table {
	struct arena arena;
	struct table_code *code;
	size_t code_count, code_capacity;
	struct table_symbol *symbols; /**< sorted by address, the best name first */
	size_t count, capacity;
	struct span_map map;
};

/** Learn from the file where code is; before the symbols. */
void table_add_code(struct table *table, Elf *elf);

/** The end of the code around the address, or 0 when there is none. */
uint64_t table_code_end(const struct table *table, uint64_t address);

/** Add a file's symbols of a section type (SHT_SYMTAB, SHT_DYNSYM); their number. The file must outlive the table. */
size_t table_add_symbols(struct table *table, Elf *elf, unsigned section_type);

/** After the last symbol, before the first question. */
void table_finish(struct table *table);

/** The best symbol that covers the address, or NULL. */
const struct table_symbol *table_find(const struct table *table, uint64_t address);

/** The best symbol that begins at the address, or NULL. */
const struct table_symbol *table_find_entry(const struct table *table, uint64_t address);

void table_fini(struct table *table);

#endif
