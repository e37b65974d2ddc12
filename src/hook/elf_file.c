/* SPDX-License-Identifier: MIT */
#include "hook/elf_file.h"

#include <errno.h>
#include <string.h>

const void *elf_at_offset(const struct elf *elf, uint64_t offset, uint64_t size)
{
	if (offset > elf->size || size > elf->size - offset)
		return NULL;
	return elf->data + offset;
}

static const Elf64_Phdr *load_of(const struct elf *elf, uint64_t address)
{
	for (uint32_t i = 0; i < elf->load_count; i++)
		if (address >= elf->load[i].p_vaddr && address - elf->load[i].p_vaddr < elf->load[i].p_filesz)
			return &elf->load[i];
	return NULL;
}

const void *elf_at_address(const struct elf *elf, uint64_t address, uint64_t size)
{
	const Elf64_Phdr *load = load_of(elf, address);
	if (!load)
		return NULL;
	uint64_t inside = address - load->p_vaddr;
	if (size > load->p_filesz - inside)
		return NULL;
	return elf->data + load->p_offset + inside;
}

uint64_t elf_code_bytes(const struct elf *elf, uint64_t address)
{
	const Elf64_Phdr *load = load_of(elf, address);
	return load && (load->p_flags & PF_X) ? load->p_filesz - (address - load->p_vaddr) : 0;
}

uint64_t elf_code_start(const struct elf *elf, uint64_t address)
{
	const Elf64_Phdr *load = load_of(elf, address);
	return load && (load->p_flags & PF_X) ? load->p_vaddr : 0;
}

int elf_check_machine(const void *data, size_t size, struct diag *diag)
{
	/* The heads of all classes agree as far as the machine. */
	Elf32_Ehdr head;
	if (size < EI_NIDENT || memcmp(data, ELFMAG, SELFMAG) != 0)
		return diag_fail(diag, ENOEXEC, "not an ELF file");
	if (size < sizeof(head))
		return diag_fail(diag, ENOEXEC, "a damaged ELF file: its header is cut");
	memcpy(&head, data, sizeof(head));
	if (head.e_ident[EI_DATA] != ELFDATA2LSB)
		return diag_fail(diag, ENOEXEC, "for another machine (big-endian)");
	if (head.e_ident[EI_CLASS] != ELFCLASS64)
		return diag_fail(diag, ENOEXEC, "%s; only x86-64 can be traced",
				 head.e_machine == EM_X86_64 ? "an x32 program" : "a 32-bit program");
	if (head.e_machine != EM_X86_64)
		return diag_fail(diag, ENOEXEC, "for another machine (ELF machine %u); only x86-64 can be traced",
				 head.e_machine);
	return 0;
}

/* Clip a segment to the bytes that the file has; a shortened file loses the rest. A segment whose addresses wrap around
   is dropped. */
static bool clip(const struct elf *elf, Elf64_Phdr *segment)
{
	if (segment->p_offset > elf->size || segment->p_vaddr + segment->p_filesz < segment->p_vaddr)
		return false;
	if (segment->p_filesz > elf->size - segment->p_offset)
		segment->p_filesz = elf->size - segment->p_offset;
	return segment->p_filesz > 0;
}

static void take_segment(struct elf *elf, Elf64_Phdr segment)
{
	if (segment.p_type == PT_INTERP) {
		elf->has_interpreter = true;
		elf->interpreter = segment.p_offset;
		elf->interpreter_bytes = segment.p_filesz;
	}
	/* The file may have no bytes of it. */
	if (segment.p_type == PT_TLS)
		elf->thread_variables = segment;
	if (!clip(elf, &segment))
		return;
	if (segment.p_type == PT_LOAD && elf->load_count < ELF_LOAD_MAX)
		elf->load[elf->load_count++] = segment;
	else if (segment.p_type == PT_NOTE && elf->notes_count < ELF_NOTES_MAX)
		elf->notes[elf->notes_count++] = segment;
	else if (segment.p_type == PT_DYNAMIC)
		elf->dynamic = segment;
	else if (segment.p_type == PT_GNU_EH_FRAME)
		elf->unwind = segment;
}

int elf_open(struct elf *elf, const void *data, size_t size, struct diag *diag)
{
	*elf = (struct elf){.data = data, .size = size};
	int error = elf_check_machine(data, size, diag);
	if (error)
		return error;
	const void *header = elf_at_offset(elf, 0, sizeof(elf->header));
	if (!header)
		return diag_fail(diag, ENOEXEC, "a damaged ELF file: its header is cut");
	memcpy(&elf->header, header, sizeof(elf->header));
	if (elf->header.e_type != ET_EXEC && elf->header.e_type != ET_DYN)
		return diag_fail(diag, ENOEXEC, "neither an executable nor a shared object");
	if (elf->header.e_phentsize != sizeof(Elf64_Phdr))
		return diag_fail(diag, ENOEXEC, "a damaged ELF file: program headers of %u bytes",
				 elf->header.e_phentsize);
	const uint8_t *headers =
		elf_at_offset(elf, elf->header.e_phoff, (uint64_t)elf->header.e_phnum * sizeof(Elf64_Phdr));
	if (!headers)
		return diag_fail(diag, ENOEXEC, "a damaged ELF file: its program headers lie outside");
	for (unsigned i = 0; i < elf->header.e_phnum; i++) {
		Elf64_Phdr segment;
		memcpy(&segment, headers + i * sizeof(segment), sizeof(segment));
		take_segment(elf, segment);
	}
	return 0;
}

bool elf_dynamic_value(const struct elf *elf, int64_t tag, uint64_t *value)
{
	const uint8_t *entries = elf->data + elf->dynamic.p_offset;
	for (uint64_t i = 0; i < elf->dynamic.p_filesz / sizeof(Elf64_Dyn); i++) {
		Elf64_Dyn entry;
		memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
		if (entry.d_tag == DT_NULL)
			return false;
		if (entry.d_tag == tag) {
			*value = entry.d_un.d_val;
			return true;
		}
	}
	return false;
}

/* Read one note of any owner at an offset of its segment. Return the offset after it, or 0 if there is none. */
static uint64_t note_read(const struct elf *elf, const Elf64_Phdr *segment, uint64_t offset, const char **owner,
			  struct elf_note *note)
{
	Elf64_Nhdr header;
	uint64_t align = segment->p_align == 8 ? 8 : 4;
	if (offset > segment->p_filesz || segment->p_filesz - offset < sizeof(header))
		return 0;
	memcpy(&header, elf->data + segment->p_offset + offset, sizeof(header));
	uint64_t name = offset + sizeof(header), text = (name + header.n_namesz + align - 1) & ~(align - 1);
	uint64_t end = (text + header.n_descsz + align - 1) & ~(align - 1);
	if (text > segment->p_filesz || header.n_descsz > segment->p_filesz - text)
		return 0;
	*owner = header.n_namesz ? (const char *)elf->data + segment->p_offset + name : "";
	if (header.n_namesz && (*owner)[header.n_namesz - 1])
		*owner = "";
	*note = (struct elf_note){header.n_type, header.n_descsz, segment->p_vaddr + text,
				  elf->data + segment->p_offset + text};
	return end;
}

bool elf_next_note(const struct elf *elf, const char *owner, struct elf_note_place *place, struct elf_note *note)
{
	for (; place->segment < elf->notes_count; place->segment++, place->offset = 0) {
		const char *found;
		uint64_t end;
		while ((end = note_read(elf, &elf->notes[place->segment], place->offset, &found, note))) {
			place->offset = end;
			if (strcmp(found, owner) == 0)
				return true;
		}
	}
	return false;
}

static bool word_at(const struct elf *elf, uint64_t address, uint32_t *word)
{
	const void *bytes = elf_at_address(elf, address, sizeof(*word));
	if (bytes)
		memcpy(word, bytes, sizeof(*word));
	return bytes != NULL;
}

/* Count symbols by DT_GNU_HASH, whose chains end at the last symbol: follow the one that begins furthest. */
static uint64_t count_by_gnu_hash(const struct elf *elf, uint64_t table)
{
	uint32_t bucket_count, first, mask_words, last = 0, link = 0;
	if (!word_at(elf, table, &bucket_count) || !word_at(elf, table + 4, &first) ||
	    !word_at(elf, table + 8, &mask_words))
		return 0;
	uint64_t buckets = table + 16 + (uint64_t)mask_words * 8, chains = buckets + (uint64_t)bucket_count * 4;
	const uint8_t *bytes = elf_at_address(elf, buckets, (uint64_t)bucket_count * 4);
	for (uint32_t i = 0; bytes && i < bucket_count; i++) {
		uint32_t start;
		memcpy(&start, bytes + (uint64_t)i * 4, sizeof(start));
		if (start > last)
			last = start;
	}
	if (last < first)
		return first;
	for (uint64_t i = last;; i++) {
		if (!word_at(elf, chains + (i - first) * 4, &link))
			return 0;
		if (link & 1)
			return i + 1;
	}
}

/* Count the dynamic symbols, by the hash tables: nothing else has their number. */
static uint64_t count_dynamic_symbols(const struct elf *elf)
{
	uint64_t table;
	uint32_t chain_count;
	if (elf_dynamic_value(elf, DT_HASH, &table) && word_at(elf, table + 4, &chain_count))
		return chain_count;
	return elf_dynamic_value(elf, DT_GNU_HASH, &table) ? count_by_gnu_hash(elf, table) : 0;
}

/* Set the symbols, with names up to the table's last zero: text after it has no end. */
static void close_names(struct elf_symbols *symbols, uint64_t count, uint64_t name_bytes)
{
	if (!symbols->entries || !symbols->strings)
		return;
	const char *last = memrchr(symbols->strings, 0, name_bytes);
	symbols->string_bytes = last ? (uint64_t)(last - symbols->strings) + 1 : 0;
	symbols->count = count;
}

struct elf_symbols elf_dynamic_symbols(const struct elf *elf)
{
	struct elf_symbols symbols = {0};
	uint64_t table, names, name_bytes, count = count_dynamic_symbols(elf);
	if (count == 0 || !elf_dynamic_value(elf, DT_SYMTAB, &table) || !elf_dynamic_value(elf, DT_STRTAB, &names) ||
	    !elf_dynamic_value(elf, DT_STRSZ, &name_bytes) || count > elf->size / sizeof(Elf64_Sym))
		return symbols;
	symbols.entries = elf_at_address(elf, table, count * sizeof(Elf64_Sym));
	symbols.strings = elf_at_address(elf, names, name_bytes);
	close_names(&symbols, count, name_bytes);
	return symbols;
}

static bool section_at(const struct elf *elf, uint64_t index, Elf64_Shdr *section)
{
	if (elf->header.e_shentsize != sizeof(*section) || index >= elf->header.e_shnum)
		return false;
	uint64_t offset;
	if (__builtin_add_overflow(elf->header.e_shoff, index * sizeof(*section), &offset))
		return false;
	const void *bytes = elf_at_offset(elf, offset, sizeof(*section));
	if (bytes)
		memcpy(section, bytes, sizeof(*section));
	return bytes != NULL;
}

bool elf_section(const struct elf *elf, const char *name, Elf64_Shdr *section)
{
	Elf64_Shdr names;
	if (!section_at(elf, elf->header.e_shstrndx, &names))
		return false;
	uint64_t bytes = strlen(name) + 1, offset;
	for (uint64_t i = 0; section_at(elf, i, section); i++) {
		if (section->sh_name >= names.sh_size || bytes > names.sh_size - section->sh_name ||
		    __builtin_add_overflow(names.sh_offset, section->sh_name, &offset))
			continue;
		const char *found = elf_at_offset(elf, offset, bytes);
		if (found && !memcmp(found, name, bytes))
			return true;
	}
	return false;
}

struct elf_symbols elf_full_symbols(const struct elf *elf)
{
	struct elf_symbols symbols = {0};
	Elf64_Shdr table, names;
	for (uint64_t i = 0; section_at(elf, i, &table); i++) {
		if (table.sh_type != SHT_SYMTAB || !section_at(elf, table.sh_link, &names))
			continue;
		symbols.entries = elf_at_offset(elf, table.sh_offset, table.sh_size);
		symbols.strings = elf_at_offset(elf, names.sh_offset, names.sh_size);
		close_names(&symbols, table.sh_size / sizeof(Elf64_Sym), names.sh_size);
		break;
	}
	return symbols;
}

Elf64_Sym elf_symbol(const struct elf_symbols *symbols, uint64_t index)
{
	Elf64_Sym symbol;
	memcpy(&symbol, symbols->entries + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

const char *elf_symbol_name(const struct elf_symbols *symbols, const Elf64_Sym *symbol)
{
	return symbol->st_name < symbols->string_bytes ? symbols->strings + symbol->st_name : "";
}

uint64_t elf_pointer_at(const struct elf *elf, uint64_t address)
{
	uint64_t table, bytes, value = 0;
	const uint8_t *entries = NULL;
	if (elf_dynamic_value(elf, DT_RELA, &table) && elf_dynamic_value(elf, DT_RELASZ, &bytes))
		entries = elf_at_address(elf, table, bytes);
	for (uint64_t i = 0; entries && i < bytes / sizeof(Elf64_Rela); i++) {
		Elf64_Rela entry;
		memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
		if (entry.r_offset == address && ELF64_R_TYPE(entry.r_info) == R_X86_64_RELATIVE)
			return (uint64_t)entry.r_addend;
	}
	const void *there = elf_at_address(elf, address, sizeof(value));
	if (there)
		memcpy(&value, there, sizeof(value));
	return value;
}

/* Return row i of the sorted table of .eh_frame_hdr: a function's beginning, relative to the header. */
static uint64_t unwind_row(const struct elf *elf, const uint8_t *rows, uint32_t i)
{
	int32_t relative;
	memcpy(&relative, rows + (uint64_t)i * 8, sizeof(relative));
	return elf->unwind.p_vaddr + (uint64_t)(int64_t)relative;
}

/* Return the start of the last function at or before the address, or with `after` of the one behind it; 0: unknown. */
static uint64_t unwind_find(const struct elf *elf, uint64_t address, uint32_t after)
{
	/* version; pc-relative, 4 bytes, sorted pairs relative to the header */
	static const uint8_t usual[4] = {1, 0x1b, 0x03, 0x3b};
	const uint8_t *header = elf_at_offset(elf, elf->unwind.p_offset, elf->unwind.p_filesz);
	uint32_t count, low = 0;
	if (elf->unwind.p_filesz < 12 || !header || memcmp(header, usual, sizeof(usual)) != 0)
		return 0;
	memcpy(&count, header + 8, sizeof(count));
	if (count == 0 || count > (elf->unwind.p_filesz - 12) / 8 || unwind_row(elf, header + 12, 0) > address)
		return 0;
	for (uint32_t high = count; high - low > 1;) {
		uint32_t middle = low + (high - low) / 2;
		if (unwind_row(elf, header + 12, middle) <= address)
			low = middle;
		else
			high = middle;
	}
	return low + after < count ? unwind_row(elf, header + 12, low + after) : 0;
}

uint64_t elf_unwind_start(const struct elf *elf, uint64_t address)
{
	return unwind_find(elf, address, 0);
}

uint64_t elf_unwind_next(const struct elf *elf, uint64_t address)
{
	return unwind_find(elf, address, 1);
}
