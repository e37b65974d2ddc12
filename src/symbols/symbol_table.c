/* SPDX-License-Identifier: MIT */
#include "symbols/symbol_table.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/memory.h"
#include "base/order.h"
#include "symbols/demangle.h"

static void table_add_range(struct table *table, uint64_t low, uint64_t size)
{
	if (!size || low + size < low)
		return;
	memory_grow(table->code, table->code_count, table->code_capacity);
	table->code[table->code_count++] = (struct table_code){low, low + size};
}

static void table_add_segments(struct table *table, Elf *elf)
{
	size_t count;
	GElf_Phdr segment;

	if (elf_getphdrnum(elf, &count))
		return;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, i, &segment) && segment.p_type == PT_LOAD && segment.p_flags & PF_X)
			table_add_range(table, segment.p_vaddr, segment.p_memsz);
}

COMPARE_BY(table_compare_code, struct table_code, low)

void table_add_code(struct table *table, Elf *elf)
{
	GElf_Shdr section;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));)
		if (gelf_getshdr(scn, &section) && section.sh_flags & SHF_ALLOC && section.sh_flags & SHF_EXECINSTR)
			table_add_range(table, section.sh_addr, section.sh_size);
	if (!table->code_count)
		table_add_segments(table, elf);
	if (table->code_count)
		qsort(table->code, table->code_count, sizeof(*table->code), table_compare_code);
}

uint64_t table_code_end(const struct table *table, uint64_t address)
{
	size_t place;
	BISECT(place, table->code_count, i, table->code[i].low <= address);
	return place && address < table->code[place - 1].high ? table->code[place - 1].high : 0;
}

/** Return the symbol's name without its version. */
static const char *table_plain_name(struct table *table, const char *name)
{
	size_t length = strcspn(name, "@");
	if (!name[length])
		return name;
	char *copy = arena_alloc(&table->arena, 1, length + 1);
	return memcpy(copy, name, length);
}

/** Return whether the symbol stands for code, by its type. An untyped one, as assemblers make, must look like a
    function. */
static bool table_is_function(const GElf_Sym *symbol, const char *name)
{
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return name[0] != '.' && name[0] != '$';
	default:
		return false;
	}
}

static bool table_add_symbol(struct table *table, const GElf_Sym *symbol, const char *name)
{
	if (!name || !name[0] || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	if (!table_is_function(symbol, name) || !table_code_end(table, symbol->st_value))
		return false;
	memory_grow(table->symbols, table->count, table->capacity);
	table->symbols[table->count++] = (struct table_symbol){
		.name = table_plain_name(table, name),
		.address = symbol->st_value,
		.size = symbol->st_size,
		.is_local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL,
		.is_typed = GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE,
	};
	return true;
}

size_t table_add_symbols(struct table *table, Elf *elf, unsigned section_type)
{
	size_t added = 0;
	GElf_Shdr section;
	GElf_Sym symbol;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		if (!gelf_getshdr(scn, &section) || section.sh_type != section_type)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		for (int i = 1; data && gelf_getsym(data, i, &symbol); i++)
			added += table_add_symbol(table, &symbol, elf_strptr(elf, section.sh_link, symbol.st_name));
	}
	return added;
}

/** Compare by address; at one address the best-known name comes first: exported, without underscores, short. */
static int table_compare(const void *left, const void *right)
{
	const struct table_symbol *a = left, *b = right;
	if (a->address != b->address)
		return a->address > b->address ? 1 : -1;
	if (a->is_local != b->is_local)
		return a->is_local - b->is_local;
	if (a->is_typed != b->is_typed)
		return b->is_typed - a->is_typed;
	size_t mine = name_underscores(a->name), others = name_underscores(b->name);
	if (mine != others)
		return mine > others ? 1 : -1;
	mine = strlen(a->name), others = strlen(b->name);
	if (mine != others)
		return mine > others ? 1 : -1;
	return strcmp(a->name, b->name);
}

void table_finish(struct table *table)
{
	const uint64_t sized = UINT64_C(1) << 63;
	struct span_list list = {0};
	uint64_t next = UINT64_MAX;

	if (table->count)
		qsort(table->symbols, table->count, sizeof(*table->symbols), table_compare);
	for (size_t i = table->count; i-- > 0;) {
		const struct table_symbol *symbol = &table->symbols[i];
		uint64_t end = table_code_end(table, symbol->address);
		if (i + 1 < table->count && table->symbols[i + 1].address > symbol->address)
			next = table->symbols[i + 1].address;
		/* One without a size reaches to the next symbol, but never into one that has a size. */
		if (symbol->size && symbol->size < end - symbol->address)
			end = symbol->address + symbol->size;
		else if (!symbol->size && next < end)
			end = next;
		span_list_add(&list, symbol->address, end, (symbol->size ? sized : 0) | (symbol->address & ~sized), i);
	}
	span_map_init(&table->map, &list);
	span_list_fini(&list);
}

const struct table_symbol *table_find(const struct table *table, uint64_t address)
{
	uint32_t place = span_map_find(&table->map, address);
	return place == SPAN_NONE ? NULL : &table->symbols[place];
}

const struct table_symbol *table_find_entry(const struct table *table, uint64_t address)
{
	size_t place;
	BISECT(place, table->count, i, table->symbols[i].address < address);
	return place < table->count && table->symbols[place].address == address ? &table->symbols[place] : NULL;
}

void table_fini(struct table *table)
{
	free(table->code);
	free(table->symbols);
	span_map_fini(&table->map);
	arena_fini(&table->arena);
	*table = (struct table){0};
}
