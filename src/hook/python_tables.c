/* SPDX-License-Identifier: MIT */
/*
 * An allocator's table begins with a context, which CPython's own allocator has none of, and names four functions. Both
 * domains name the same ones, which have no exported names, and a stripped program has no symbols:
 *
 *     PyObject_Malloc(size)                      table of objects       _PyObject_Malloc(context, size)
 *         table.malloc(table.context, size) -->  context = NULL     -->     a pool, or malloc()
 *                                                malloc, calloc,
 *                                                realloc, free
 *
 * A compiler that knows from a profile what a table contains compares its word with the function, and has a copy of the
 * function for the case that it is there. Then a patch of the function is not enough: the table has to name another
 * address, behind which the function is called. The interpreter takes its allocator for another one then, and
 * sys._debugmallocstats() says nothing of it; so that is done only where it must be.
 */
#include "hook/python_tables.h"

#include <string.h>

#include "arch/code.h"
#include "hook/elf_file.h"

enum {
	RUNTIME_FIRST = 12,
	WORD = sizeof(uint64_t),
	LOOK_MAX = 24, /* instructions of a caller, up to its call */
	PAGE = 4096,
	SPARE_ALIGNMENT = 16,
	SPARE_BORROWED = 256 /* which system calls may borrow at an attach: REMOTE_GATE_BYTES */
};

/* Where the tables lie in _PyRuntime, by minor version from RUNTIME_FIRST on: objects, memory. */
static const uint16_t table_offsets[][HOOK_PYTHON_TABLES] = {{0xb0, 0x88}, {0x310, 0x2e8}, {0x3c0, 0x398}};

/* Get the functions that a table names. Return false if it is none of CPython's own allocator. */
static bool table_read(const struct elf *elf, uint64_t table, uint64_t functions[HOOK_PYTHON_FUNCTIONS])
{
	if (elf_pointer_at(elf, table))
		return false;
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++) {
		functions[i] = elf_pointer_at(elf, table + (i + 1) * WORD);
		if (!elf_code_bytes(elf, functions[i]))
			return false;
	}
	return true;
}

static bool has_immediate(const uint8_t *bytes, uint32_t count, uint64_t value)
{
	uint32_t low = (uint32_t)value;
	for (uint32_t i = 0; low == value && i + sizeof(low) <= count; i++)
		if (!memcmp(bytes + i, &low, sizeof(low)))
			return true;
	return false;
}

/* Return whether a caller of what a table names compares that with one of the functions. */
static bool compares(const struct elf *elf, uint64_t caller, const uint64_t functions[HOOK_PYTHON_FUNCTIONS])
{
	struct code code;
	uint64_t available = caller ? elf_code_bytes(elf, caller) : 0;
	const uint8_t *bytes = available ? elf_at_address(elf, caller, available) : NULL;
	for (unsigned i = 0; bytes && i < LOOK_MAX && code_decode(&code, bytes, available, caller); i++) {
		for (unsigned f = 0; f < HOOK_PYTHON_FUNCTIONS; f++)
			if ((code.kind == CODE_RELATIVE && code.target == functions[f]) ||
			    has_immediate(bytes, code.length, functions[f]))
				return true;
		bytes += code.length;
		available -= code.length;
		caller += code.length;
	}
	return false;
}

/* Return the table that a function's first instructions read: its context, or the function behind it. 0: none. */
static uint64_t table_of_caller(const struct elf *elf, uint64_t caller)
{
	struct code code;
	uint64_t functions[HOOK_PYTHON_FUNCTIONS], available = caller ? elf_code_bytes(elf, caller) : 0;
	const uint8_t *bytes = available ? elf_at_address(elf, caller, available) : NULL;
	for (unsigned i = 0; bytes && i < LOOK_MAX && code_decode(&code, bytes, available, caller); i++) {
		for (unsigned back = 0; code.kind == CODE_RELATIVE && back <= WORD; back += WORD)
			if (table_read(elf, code.target - back, functions))
				return code.target - back;
		bytes += code.length;
		available -= code.length;
		caller += code.length;
	}
	return 0;
}

static uint64_t table_address(const struct elf *elf, uint32_t version, unsigned table, uint64_t caller,
			      uint64_t runtime)
{
	uint32_t row = version - RUNTIME_FIRST;
	if (version < RUNTIME_FIRST)
		return table_of_caller(elf, caller);
	return runtime && row < sizeof(table_offsets) / sizeof(*table_offsets) ? runtime + table_offsets[row][table]
									       : 0;
}

/* Return the address of spare bytes behind the image's code, in its last page; 0: there are too few. */
static uint64_t spare_address(const struct elf *elf, uint64_t function)
{
	for (uint32_t i = 0; i < elf->load_count; i++) {
		const Elf64_Phdr *load = &elf->load[i];
		if (!(load->p_flags & PF_X) || function - load->p_vaddr >= load->p_memsz ||
		    load->p_filesz != load->p_memsz)
			continue;
		uint64_t end = load->p_vaddr + load->p_memsz,
			 at = ((end + SPARE_ALIGNMENT - 1) & ~(uint64_t)(SPARE_ALIGNMENT - 1)) + SPARE_BORROWED;
		bool is_in_page = (at + HOOK_PYTHON_WAYS_BYTES - 1) / PAGE == (end - 1) / PAGE;
		return is_in_page ? at : 0;
	}
	return 0;
}

bool python_tables_find(const struct elf *elf, uint32_t version,
			const uint64_t callers[HOOK_PYTHON_TABLES][HOOK_PYTHON_FUNCTIONS], uint64_t runtime,
			struct hook_python_objects *objects)
{
	uint64_t functions[HOOK_PYTHON_TABLES][HOOK_PYTHON_FUNCTIONS];
	bool has_copies = false;
	for (unsigned i = 0; i < HOOK_PYTHON_TABLES; i++) {
		objects->tables[i] = table_address(elf, version, i, callers[i][0], runtime);
		if (!objects->tables[i] || !table_read(elf, objects->tables[i], functions[i]))
			return false;
	}
	if (memcmp(functions[0], functions[1], sizeof(functions[0])) != 0)
		return false;
	for (unsigned i = 0; i < HOOK_PYTHON_TABLES * HOOK_PYTHON_FUNCTIONS; i++)
		has_copies |=
			compares(elf, callers[i / HOOK_PYTHON_FUNCTIONS][i % HOOK_PYTHON_FUNCTIONS], functions[0]);
	memcpy(objects->functions, functions[0], sizeof(objects->functions));
	objects->ways = has_copies ? spare_address(elf, functions[0][0]) : 0;
	return objects->ways || !has_copies;
}
