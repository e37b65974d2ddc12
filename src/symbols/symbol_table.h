/* SPDX-License-Identifier: MIT */
/** The functions named by an image's symbol tables. */
#ifndef XHEAP_SYMBOLS_SYMBOL_TABLE_H
#define XHEAP_SYMBOLS_SYMBOL_TABLE_H

#include <libelf.h>
#include <stdbool.h>

#include "base/arena.h"
#include "symbols/spans.h"

/** Addresses of code: executable sections, or segments if there are no sections. */
struct table_code {
	uint64_t low, high;
};

struct table_symbol {
	const char *name; /**< in the file's memory or the table's arena */
	uint64_t address, size;
	bool is_local, is_typed;
};

/** A table of symbols. Zero it to begin. */
struct table {
	struct arena arena;
	struct table_code *code;
	size_t code_count, code_capacity;
	struct table_symbol *symbols; /**< sorted by address, the best name first */
	size_t count, capacity;
	struct span_map map;
};

/** Read from the file where its code is. To be called before table_add_symbols(). */
void table_add_code(struct table *table, Elf *elf);

/** Return the end of the code around the address; 0: there is none. */
uint64_t table_code_end(const struct table *table, uint64_t address);

/** Add the symbols of a file's section type (SHT_SYMTAB, SHT_DYNSYM). Return their number. The file must outlive the
    table. */
size_t table_add_symbols(struct table *table, Elf *elf, unsigned section_type);

/** Sort the symbols. To be called after the last symbol and before the first search. */
void table_finish(struct table *table);

/** Return the best symbol that covers the address, or NULL. Valid until table_fini(). */
const struct table_symbol *table_find(const struct table *table, uint64_t address);

/** Return the best symbol that begins at the address, or NULL. Valid until table_fini(). */
const struct table_symbol *table_find_entry(const struct table *table, uint64_t address);

/** Free the table. */
void table_fini(struct table *table);

#endif
