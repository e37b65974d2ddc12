/* SPDX-License-Identifier: MIT */
/*
 * A request is four rotations of rdi, by 128 bits in all, and an exchange of rbx with itself. No compiler writes that
 * by itself: it comes from a macro, in a piece of assembler that nothing jumps into.
 *
 * That the bytes are instructions is proved from the beginning of the function around them: decoded one after the
 * other, instructions must begin where these bytes do. An earlier instruction normally writes the request's number into
 * memory. Other requests (whether Valgrind runs, in inner loops) are left as they are.
 */
#include "hook/request_sites.h"

#include <string.h>

#include "arch/code.h"
#include "base/requests.h"
#include "base/wide_registers.h"

enum {
	FUNCTION_BYTES_MAX = 1 << 18,
	LOOK_MAX = 512,
	OPCODE_STORE = 0xc7,
	OPCODE_LOAD = 0xb8,
	LOAD_MASK = 0xf8,
	CONSTANT_BYTES = 4,
	RUN = 1024 /* bytes that are looked through at once */
};

static const uint8_t preamble[REQUEST_BYTES] = {0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1,
						0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33, 0x48, 0x87, 0xdb};

/* Return whether a number is a request's. Valgrind's own have few numbers; those of its tools begin with two
   letters. */
static bool is_any_request(uint32_t number)
{
	uint8_t first = number >> 24 & 0xff, second = number >> 16 & 0xff;
	bool is_core = number >= 0x1001 && number < 0x1a00 && (number & 0xff) < 0x20;
	return is_core || (first >= 'A' && first <= 'Z' && second >= 'A' && second <= 'Z');
}

static bool is_of_heaps(uint32_t number)
{
	return number >= REQUEST_FIRST && number <= REQUEST_LAST;
}

/* Return the constant that the instruction writes, or 0. */
static uint32_t constant_of(const struct code *code, const uint8_t *bytes)
{
	uint32_t number = 0;
	if (code->length > CONSTANT_BYTES &&
	    (code->opcode == OPCODE_STORE || (code->opcode & LOAD_MASK) == OPCODE_LOAD))
		memcpy(&number, bytes + code->length - CONSTANT_BYTES, sizeof(number));
	return number;
}

/* Return the function's beginning by the unwind table or, in a static program without one, by symbols; 0: unknown. */
static uint64_t function_start(const struct elf *elf, uint64_t address)
{
	uint64_t start = elf_unwind_start(elf, address);
	struct elf_symbols symbols = start ? (struct elf_symbols){.count = 0} : elf_full_symbols(elf);
	for (uint64_t i = 1; i < symbols.count; i++) {
		Elf64_Sym symbol = elf_symbol(&symbols, i);
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value <= address &&
		    address - symbol.st_value < symbol.st_size)
			start = symbol.st_value;
	}
	return start;
}

/* Return whether it is one, and may be of a heap. */
static bool is_taken(const struct elf *elf, uint64_t site)
{
	uint64_t at = function_start(elf, site);
	bool is_ours = false, is_other = false;
	if (!at || site - at > FUNCTION_BYTES_MAX)
		return false;
	while (at < site) {
		struct code code;
		const uint8_t *bytes = elf_at_address(elf, at, site - at + REQUEST_BYTES);
		if (!bytes || !code_decode_branch(&code, bytes, site - at + REQUEST_BYTES, at))
			return false;
		if (at + REQUEST_BYTES <= site && memcmp(bytes, preamble, REQUEST_BYTES) == 0)
			is_ours = is_other = false; /* what came before was this one's */
		uint32_t number = constant_of(&code, bytes);
		is_ours |= is_of_heaps(number);
		is_other |= is_any_request(number) && !is_of_heaps(number);
		at += code.length;
	}
	return at == site && (is_ours || !is_other);
}

/* The sites that were found, and how often the bytes led to a proof: a file may have the bytes everywhere. */
struct request_search {
	uint64_t *sites;
	uint32_t count, room, looks;
	bool is_cut;
};

/* Return whether one of the RUN bytes begins the end of the preamble, two bytes that are rare in code. One more byte is
   read. */
WIDE_REGISTERS static bool has_end(const uint8_t *bytes)
{
	uint8_t found = 0;
	for (unsigned i = 0; i < RUN; i++)
		found |= (uint8_t)((bytes[i] == preamble[REQUEST_BYTES - 2]) &
				   (bytes[i + 1] == preamble[REQUEST_BYTES - 1]));
	return found;
}

/* As memmem(), for the preamble. */
static const uint8_t *preamble_find(const uint8_t *at, const uint8_t *end)
{
	for (; end - at >= RUN + REQUEST_BYTES; at += RUN) {
		const uint8_t *found = has_end(at + REQUEST_BYTES - 2)
					       ? memmem(at, RUN + REQUEST_BYTES - 1, preamble, sizeof(preamble))
					       : NULL;
		if (found)
			return found;
	}
	return memmem(at, (size_t)(end - at), preamble, sizeof(preamble));
}

/* Search one executable part of the file, of which `bytes` exist. */
static void search_in(struct request_search *search, const struct elf *elf, uint64_t address, const uint8_t *code,
		      uint64_t bytes)
{
	const uint8_t *end = code + bytes;
	for (const uint8_t *at = code; (at = preamble_find(at, end)) != NULL; at += sizeof(preamble)) {
		uint64_t site = address + (uint64_t)(at - code);
		search->is_cut = search->looks++ == LOOK_MAX || search->count == search->room;
		if (search->is_cut)
			return;
		if (is_taken(elf, site))
			search->sites[search->count++] = site;
	}
}

uint32_t requests_find(const struct elf *elf, uint64_t *sites, uint32_t room, bool *is_cut)
{
	struct request_search search = {.sites = sites, .room = room};
	for (uint32_t i = 0; i < elf->load_count && !search.is_cut; i++) {
		const Elf64_Phdr *part = &elf->load[i];
		uint64_t bytes = part->p_flags & PF_X ? elf_code_bytes(elf, part->p_vaddr) : 0;
		const uint8_t *code = bytes ? elf_at_address(elf, part->p_vaddr, bytes) : NULL;
		if (code)
			search_in(&search, elf, part->p_vaddr, code, bytes);
	}
	*is_cut = search.is_cut;
	return search.count;
}
