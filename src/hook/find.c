/* SPDX-License-Identifier: MIT */
/*
 * The choice of functions to hook in an image. Symbols give candidates; the kind of the image decides which count:
 *
 * - malloc and its like, in an image that defines malloc itself. A lone memalign or reallocarray is a program's
 *   wrapper, whose blocks are those of the malloc beneath.
 * - C++ operators, in an allocator that has its own. Those of libstdc++ call malloc, and that call is the event.
 * - functions that an allocator exports under a prefix, wherever they are.
 * - functions of a C library that replace a process or its rules (execve, prctl); a loader's call of debuggers.
 * - the calls of xheap/heap.h, found by notes, and requests to Valgrind, found by their bytes.
 *
 * The names of one address are one target. Local symbols count in static programs only: elsewhere a local malloc is the
 * business of one source file. The loader of glibc has a malloc for its own start, which is no heap.
 */
#include "hook/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/code.h"
#include "arch/patch_bytes.h"
#include "base/bisect.h"
#include "base/order.h"
#include "hook/branches.h"
#include "hook/context_symbol.h"
#include "hook/displace.h"
#include "hook/elf_file.h"
#include "hook/entry_names.h"
#include "hook/hook.h"
#include "hook/python_arenas.h"
#include "hook/python_tables.h"
#include "hook/request_sites.h"

enum { FINDING_MAX = 512, REQUESTS_MAX = 192, OPERATOR_LOOK_MAX = 32, DEBUG_STATE_OFFSET = 24, SILENT_GAP_MAX = 512 };

/* A symbol whose name is in the table. */
struct finding {
	const struct hook_name *name;
	uint64_t address, size;
	bool is_local, is_exported;
};

struct finder {
	struct elf elf;
	struct elf_symbols dynamic, full;
	struct hook_image *image;
	bool is_static;
	bool is_libc;
	bool owns_operators;
	struct finding finding[FINDING_MAX];
	uint32_t count;
	struct finding mark[MARK_COUNT];
	uint64_t usable_size[FAMILY_COUNT];
	struct branches branches;
};

static bool is_defined(const Elf64_Sym *symbol)
{
	return symbol->st_shndx != SHN_UNDEF && (symbol->st_shndx < SHN_LORESERVE || symbol->st_shndx == SHN_XINDEX) &&
	       symbol->st_value != 0;
}

static void take_mark(struct finder *finder, const struct finding *finding)
{
	uint8_t mark = finding->name->function;
	if (!finder->mark[mark].name)
		finder->mark[mark] = *finding;
	if (mark == MARK_USABLE_SIZE && elf_code_bytes(&finder->elf, finding->address) &&
	    !finder->usable_size[finding->name->of_family])
		finder->usable_size[finding->name->of_family] = finding->address;
}

static void take_symbol(struct finder *finder, const struct hook_name *name, const Elf64_Sym *symbol, bool is_exported)
{
	struct finding finding = {name, symbol->st_value, symbol->st_size, ELF64_ST_BIND(symbol->st_info) == STB_LOCAL,
				  is_exported};
	if (name->family == FAMILY_MARK)
		return take_mark(finder, &finding);
	if (finding.is_local && !finder->is_static)
		return;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && elf_code_bytes(&finder->elf, finding.address) &&
	    finder->count < FINDING_MAX)
		finder->finding[finder->count++] = finding;
}

static void take_symbols(struct finder *finder, const struct elf_symbols *symbols, bool is_exported)
{
	for (uint64_t i = 1; i < symbols->count; i++) {
		Elf64_Sym symbol = elf_symbol(symbols, i);
		unsigned type = ELF64_ST_TYPE(symbol.st_info);
		if ((type != STT_FUNC && type != STT_OBJECT) || !is_defined(&symbol))
			continue;
		finder->image->has_symbols |= type == STT_FUNC;
		const struct hook_name *name = hook_name_find(elf_symbol_name(symbols, &symbol));
		if (name)
			take_symbol(finder, name, &symbol, is_exported);
	}
}

/* Return the address of a call of xheap/heap.h, if its bytes are those that the header makes. */
static uint64_t annotation_address(const struct elf *elf, const struct elf_note *note)
{
	int32_t distance;
	memcpy(&distance, note->description + 4, sizeof(distance));
	uint64_t address = note->address + 4 + (uint64_t)(int64_t)distance;
	const uint8_t *bytes = elf_code_bytes(elf, address) >= PATCH_ANNOTATION_BYTES
				       ? elf_at_address(elf, address, PATCH_ANNOTATION_BYTES)
				       : NULL;
	return bytes && patch_is_annotation(bytes) ? address : 0;
}

static void take_annotations(struct finder *finder)
{
	enum { VERSION = 1, BYTES = 8 };
	struct elf_note_place place = {0};
	struct elf_note note;
	while (elf_next_note(&finder->elf, "xheap", &place, &note) && finder->count < FINDING_MAX) {
		uint32_t number = 0;
		if (note.type == VERSION && note.size == BYTES)
			memcpy(&number, note.description, sizeof(number));
		const struct hook_name *name = hook_annotation_find(number);
		uint64_t address = name ? annotation_address(&finder->elf, &note) : 0;
		if (address)
			finder->finding[finder->count++] = (struct finding){.name = name, .address = address};
	}
}

/* Find requests, which are in no table, by searching the code. */
static void take_requests(struct finder *finder)
{
	static const struct hook_name name = {
		.name = "a request to Valgrind", .function = HOOK_REQUEST, .family = FAMILY_ANNOTATION};
	uint64_t sites[REQUESTS_MAX];
	uint32_t count = requests_find(&finder->elf, sites, REQUESTS_MAX, &finder->image->has_more_requests);
	for (uint32_t i = 0; i < count && finder->count < FINDING_MAX; i++)
		finder->finding[finder->count++] = (struct finding){.name = &name, .address = sites[i]};
}

static const struct finding *find(const struct finder *finder, uint8_t function, uint8_t family)
{
	for (uint32_t i = 0; i < finder->count; i++)
		if (finder->finding[i].name->function == function && finder->finding[i].name->family == family)
			return &finder->finding[i];
	return NULL;
}

static const struct finding *find_name(const struct finder *finder, const char *name)
{
	for (uint32_t i = 0; i < finder->count; i++)
		if (strcmp(finder->finding[i].name->name, name) == 0)
			return &finder->finding[i];
	return NULL;
}

static bool has_mark(const struct finder *finder, enum hook_mark mark)
{
	return finder->mark[mark].name != NULL;
}

/* Return whether an operator comes to a malloc or free of this image before anything else is decided: then that is the
   event. A jump is followed, since one operator may be another. */
static bool is_forwarder(const struct finder *finder, uint64_t address)
{
	for (unsigned i = 0; i < OPERATOR_LOOK_MAX; i++) {
		struct code code;
		uint64_t available = elf_code_bytes(&finder->elf, address);
		const uint8_t *bytes = elf_at_address(&finder->elf, address, available);
		if (!available || !bytes || !code_decode_branch(&code, bytes, available, address))
			return false;
		address += code.length;
		if (code.kind == CODE_PLAIN)
			continue;
		for (uint32_t j = 0; j < finder->count; j++)
			if (finder->finding[j].address == code.target && finder->finding[j].name->family == FAMILY_C)
				return code.kind == CODE_CALL || code.kind == CODE_JUMP;
		if (code.kind != CODE_JUMP)
			return false;
		address = code.target;
	}
	return false;
}

/* Return whether the image's own code can have memory from an allocator elsewhere. */
static bool imports_malloc(const struct finder *finder)
{
	for (uint64_t i = 1; i < finder->dynamic.count; i++) {
		Elf64_Sym symbol = elf_symbol(&finder->dynamic, i);
		const struct hook_name *name =
			is_defined(&symbol) ? NULL : hook_name_find(elf_symbol_name(&finder->dynamic, &symbol));
		if (name && (name->family == FAMILY_C || name->family == FAMILY_LIBC) &&
		    name->function != FUNCTION_FREE)
			return true;
	}
	return false;
}

/* Return whether the image's operators are events: an operator new that hands out blocks by itself on any path. That is
   so in an allocator, and in a program with a pool of its own from the system. A pool from malloc is visible by
   malloc's events. */
static bool owns_operators(const struct finder *finder)
{
	if (finder->image->defines_malloc ? finder->image->flavour != HOOK_FLAVOUR_OTHER
					  : finder->is_static || imports_malloc(finder))
		return false;
	for (uint32_t i = 0; i < finder->count; i++) {
		const struct finding *finding = &finder->finding[i];
		if (finding->name->family == FAMILY_OPERATOR && finding->name->function == FUNCTION_NEW &&
		    !is_forwarder(finder, finding->address))
			return true;
	}
	return false;
}

/* Return whether the image is a loader: it exports its call of debuggers and needs nothing loaded before it. */
static bool is_loader(const struct finder *finder)
{
	uint64_t needed;
	const struct finding *state = find(finder, HOOK_LOADER, FAMILY_SYSTEM);
	return state && state->is_exported && finder->elf.header.e_type == ET_DYN && !finder->elf.has_interpreter &&
	       !elf_dynamic_value(&finder->elf, DT_NEEDED, &needed);
}

static enum hook_flavour flavour_of(const struct finder *finder)
{
	if (!finder->image->defines_malloc)
		return HOOK_FLAVOUR_OTHER;
	if (has_mark(finder, MARK_GLIBC) || (finder->is_static && has_mark(finder, MARK_GLIBC_MALLOC)))
		return HOOK_FLAVOUR_GLIBC;
	bool is_musl = finder->is_static ? has_mark(finder, MARK_MUSL)
					 : finder->image->is_loader && find(finder, HOOK_START, FAMILY_SYSTEM);
	return is_musl ? HOOK_FLAVOUR_MUSL : HOOK_FLAVOUR_OTHER;
}

/* Return the minor version of the image's CPython 3, 0 if it is not known. */
static uint32_t python_version(const struct finder *finder)
{
	enum { FINAL = 0xf };
	uint64_t number;
	const uint8_t *bytes =
		has_mark(finder, MARK_PYTHON_VERSION)
			? elf_at_address(&finder->elf, finder->mark[MARK_PYTHON_VERSION].address, sizeof(number))
			: NULL;
	if (!bytes)
		return has_mark(finder, MARK_PYTHON_10)  ? 10
		       : has_mark(finder, MARK_PYTHON_9) ? 9
		       : has_mark(finder, MARK_PYTHON_8) ? 8
							 : 0;
	memcpy(&number, bytes, sizeof(number));
	return number >> 24 == 3 && (number >> 4 & 0xf) == FINAL ? number >> 16 & 0xff : 0;
}

/* Find the part of the evaluation that the compiler has split off, where no symbol names it: jumps lead into the midst
   of what is no function of its own. */
static void find_cold(const struct elf *elf, struct hook_python *python)
{
	const uint64_t end = python->eval + python->eval_bytes;
	struct code code;
	for (uint64_t at = python->eval; at < end; at += code.length) {
		uint64_t available = elf_code_bytes(elf, at);
		const uint8_t *bytes = elf_at_address(elf, at, available);
		if (!available || !bytes || !code_decode_branch(&code, bytes, available, at))
			return;
		bool is_jump = code.kind == CODE_JUMP || code.kind == CODE_CONDITION;
		if (!is_jump || code.target - python->eval < python->eval_bytes)
			continue;
		uint64_t start = elf_unwind_start(elf, code.target), next = elf_unwind_next(elf, code.target);
		if (!start || start == code.target || !next)
			continue;
		python->cold = start;
		python->cold_bytes = next - start;
		return;
	}
}

/* Describe the Python interpreter, if the image has one. */
static void describe_python(struct finder *finder)
{
	const struct finding *mark = finder->mark, *eval = &mark[MARK_PYTHON_EVAL], *cold = &mark[MARK_PYTHON_COLD];
	struct hook_python *python = &finder->image->python;
	if (!eval->address)
		return;
	*python = (struct hook_python){.eval = eval->address,
				       .eval_bytes = eval->size,
				       .cold = cold->address,
				       .cold_bytes = cold->size,
				       .own_state = mark[MARK_PYTHON_OWN_STATE].address,
				       .current_state = mark[MARK_PYTHON_CURRENT_STATE].address,
				       .code_type = mark[MARK_PYTHON_CODE].address,
				       .text_type = mark[MARK_PYTHON_TEXT].address,
				       .bytes_type = mark[MARK_PYTHON_BYTES].address,
				       .version = python_version(finder)};
	python->is_unknown = has_mark(finder, MARK_PYTHON_OTHER) || python->version < HOOK_PYTHON_FIRST ||
			     python->version > HOOK_PYTHON_LAST || !python->eval_bytes || !python->own_state ||
			     !python->code_type || !python->text_type || !python->bytes_type;
	if (python->is_unknown)
		python->version = 0;
	else if (!python->cold)
		find_cold(&finder->elf, python);
}

/* Find the functions by which Python takes memory for its objects, and gives it back. */
static void take_arenas(struct finder *finder)
{
	static const char *const names[] = {"_PyObject_ArenaMmap", "_PyObject_ArenaMunmap"};
	const struct finding *mark = finder->mark;
	uint64_t addresses[2];
	if (!finder->image->python.version || finder->count + 2 > FINDING_MAX ||
	    !python_arenas_find(&finder->elf, finder->image->python.version, mark[MARK_PYTHON_ARENAS].address,
				mark[MARK_PYTHON_RUNTIME].address, &addresses[0], &addresses[1]))
		return;
	for (unsigned i = 0; i < 2; i++)
		finder->finding[finder->count++] =
			(struct finding){.name = hook_name_find(names[i]), .address = addresses[i]};
}

/* Find the functions from which Python takes single objects. They make events as an annotated heap's do. */
static void take_objects(struct finder *finder)
{
	static const struct hook_name names[HOOK_PYTHON_FUNCTIONS] = {
		{"_PyObject_Malloc", FUNCTION_HEAP_ALLOC, FAMILY_ANNOTATION, 0},
		{"_PyObject_Calloc", FUNCTION_HEAP_ALLOC, FAMILY_ANNOTATION, 0},
		{"_PyObject_Realloc", FUNCTION_HEAP_REALLOC, FAMILY_ANNOTATION, 0},
		{"_PyObject_Free", FUNCTION_HEAP_FREE, FAMILY_ANNOTATION, 0}};
	const struct finding *mark = finder->mark;
	struct hook_python *python = &finder->image->python;
	uint64_t callers[HOOK_PYTHON_TABLES][HOOK_PYTHON_FUNCTIONS];
	struct hook_python_objects objects = {.ways = 0};
	for (unsigned table = 0; table < HOOK_PYTHON_TABLES; table++)
		for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++)
			callers[table][i] = mark[MARK_PYTHON_CALLERS + table * HOOK_PYTHON_FUNCTIONS + i].address;
	if (!python->version || finder->count + HOOK_PYTHON_FUNCTIONS > FINDING_MAX ||
	    !python_tables_find(&finder->elf, python->version, callers, mark[MARK_PYTHON_RUNTIME].address, &objects))
		return;
	python->objects = objects;
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++)
		finder->finding[finder->count++] = (struct finding){.name = &names[i], .address = objects.functions[i]};
}

static void describe(struct finder *finder)
{
	struct hook_image *image = finder->image;
	image->is_loader = is_loader(finder);
	image->defines_malloc = find(finder, FUNCTION_MALLOC, FAMILY_C) != NULL;
	image->flavour = flavour_of(finder);
	if (image->is_loader && image->flavour != HOOK_FLAVOUR_MUSL)
		image->defines_malloc = false;
	finder->is_libc = finder->is_static || image->flavour != HOOK_FLAVOUR_OTHER;
	finder->owns_operators = owns_operators(finder);
	image->main_arena = finder->mark[MARK_MAIN_ARENA].address;
	if (has_mark(finder, MARK_DEBUG_STRUCT))
		image->loader_state = finder->mark[MARK_DEBUG_STRUCT].address + DEBUG_STATE_OFFSET;
	else if (image->is_loader && has_mark(finder, MARK_DEBUG_POINTER))
		image->loader_state =
			elf_pointer_at(&finder->elf, finder->mark[MARK_DEBUG_POINTER].address) + DEBUG_STATE_OFFSET;
	describe_python(finder);
	take_arenas(finder);
	take_objects(finder);
}

/* Return whether a local symbol also exists as a global one: then the local ones belong to single source files. */
static bool is_overshadowed(const struct finder *finder, const struct finding *local)
{
	for (uint32_t i = 0; local->is_local && i < finder->count; i++)
		if (finder->finding[i].name == local->name && !finder->finding[i].is_local)
			return true;
	return false;
}

static bool counts(const struct finder *finder, const struct finding *finding)
{
	if (is_overshadowed(finder, finding))
		return false;
	switch (finding->name->family) {
	case FAMILY_C:
	case FAMILY_EXTENDED:
	case FAMILY_LIBC:
		return finder->image->defines_malloc;
	case FAMILY_OPERATOR:
		return finder->owns_operators;
	case FAMILY_SYSTEM:
		return finding->name->function == HOOK_LOADER ? finder->image->is_loader || finder->is_static
							      : finder->is_libc;
	default:
		return true;
	}
}

static int compare_findings(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	unsigned rank_a = hook_name_rank(a->name), rank_b = hook_name_rank(b->name);
	return rank_a < rank_b ? -1 : rank_a > rank_b;
}

static void keep_what_counts(struct finder *finder)
{
	struct finding kept[FINDING_MAX];
	uint32_t count = 0;
	for (uint32_t i = 0; i < finder->count; i++)
		if (counts(finder, &finder->finding[i]))
			kept[count++] = finder->finding[i];
	memcpy(finder->finding, kept, count * sizeof(kept[0]));
	finder->count = count;
	qsort(finder->finding, count, sizeof(finder->finding[0]), compare_findings);
}

/* Return whether the plain malloc_usable_size is known to read only. An unknown one may count, print, or check that it
   is not called too early, as sanitizers' do. */
static bool has_known_allocator(const struct finder *finder)
{
	return finder->image->flavour != HOOK_FLAVOUR_OTHER || has_mark(finder, MARK_KNOWN_ALLOCATOR);
}

/* Return a family's own function, else the plain one, which belongs to a C library's malloc without prefix. */
static uint64_t usable_size_of(const struct finder *finder, const struct hook_name *name)
{
	if (name->family >= FAMILY_ANNOTATION)
		return 0;
	bool is_prefixed = name->family >= FAMILY_JEMALLOC && name->family <= FAMILY_TCMALLOC;
	if (is_prefixed && finder->usable_size[name->family])
		return finder->usable_size[name->family];
	return has_known_allocator(finder) ? finder->usable_size[FAMILY_C] : 0;
}

static enum hook_flavour flavour_of_name(const struct finder *finder, const struct hook_name *name)
{
	return name->family == FAMILY_C || name->family == FAMILY_LIBC ? finder->image->flavour : HOOK_FLAVOUR_OTHER;
}

/* Return 1 + the place among the functions for Python's objects, 0 if it is none of them. */
static uint8_t python_object_of(const struct finder *finder, const struct finding *finding)
{
	const struct hook_python_objects *objects = &finder->image->python.objects;
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++)
		if (objects->functions[i] == finding->address)
			return (uint8_t)(i + 1);
	return 0;
}

static void add_target(struct finder *finder, const struct finding *finding)
{
	struct hook_image *image = finder->image;
	struct hook_target *target = &image->targets[image->target_count++];
	*target = (struct hook_target){.function = finding->name->function,
				       .address = finding->address,
				       .size = finding->size,
				       .handlerless = -1,
				       .is_operator = finding->name->family == FAMILY_OPERATOR,
				       .flavour = flavour_of_name(finder, finding->name),
				       .usable_size = usable_size_of(finder, finding->name),
				       .python_object = python_object_of(finder, finding)};
	strncpy(target->name, finding->name->name, sizeof(target->name) - 1);
	uint64_t available = elf_code_bytes(&finder->elf, target->address);
	displace_measure(target, elf_at_address(&finder->elf, target->address, available), available);
}

static int make_targets(struct finder *finder, struct diag *diag)
{
	struct hook_image *image = finder->image;
	if (finder->count == 0)
		return 0;
	image->targets = calloc(finder->count, sizeof(image->targets[0]));
	if (!image->targets)
		return diag_fail(diag, ENOMEM, "no memory");
	for (uint32_t i = 0; i < finder->count; i++) {
		struct hook_target *last = image->target_count ? &image->targets[image->target_count - 1] : NULL;
		if (!last || last->address != finder->finding[i].address)
			add_target(finder, &finder->finding[i]);
		else if (last->size < finder->finding[i].size)
			last->size = finder->finding[i].size;
	}
	return 0;
}

/* Refuse targets in whose displaced bytes another function begins. */
static void refuse_shared_bytes(struct finder *finder, const struct elf_symbols *symbols)
{
	struct hook_image *image = finder->image;
	for (uint64_t i = 1; i < symbols->count; i++) {
		Elf64_Sym symbol = elf_symbol(symbols, i);
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !is_defined(&symbol))
			continue;
		size_t at; /* targets are sorted: those before it begin before the symbol */
		BISECT(at, image->target_count, t, image->targets[t].address < symbol.st_value);
		while (at > 0 && symbol.st_value - image->targets[at - 1].address < HOOK_DISPLACED_MAX) {
			struct hook_target *target = &image->targets[--at];
			if (symbol.st_value - target->address < target->displaced) {
				target->displaced = 0;
				target->reason = "another function begins in its first bytes";
			}
		}
	}
}

/* Return the one function for all of an image's blocks; none if two allocators share the image. */
static uint64_t common_usable_size(const struct hook_image *image)
{
	uint64_t only = 0;
	for (uint32_t i = 0; i < image->target_count; i++) {
		uint64_t address = image->targets[i].usable_size;
		if (hook_target_is_heap(&image->targets[i]) && only && address != only)
			return 0;
		only = address ? address : only;
	}
	return only;
}

static int32_t target_at(const struct hook_image *image, uint64_t address)
{
	for (uint32_t i = 0; i < image->target_count; i++)
		if (image->targets[i].address == address)
			return (int32_t)i;
	return -1;
}

/* Return whether operator delete takes malloc's blocks as its own. A debugging tcmalloc remembers the kind of each
   block; in any other, delete is free. */
static bool has_one_kind(const struct finder *finder, uint8_t family)
{
	const struct finding *delete = find_name(finder, "tc_delete"), *free = find_name(finder, "tc_free");
	return family != FAMILY_TCMALLOC || (delete &&free && delete->address == free->address);
}

/* Return the function to try before an operator new: it takes the same blocks from the same heap, and calls no new
   handler. The nothrow operator calls them, too; so does tcmalloc's malloc in one of its modes. NULL: none is known. */
static const struct finding *handlerless_of(const struct finder *finder, const struct hook_name *name)
{
	static const struct {
		uint8_t family;
		const char *plain, *aligned;
	} rows[] = {
		{FAMILY_JEMALLOC, "malloc", "aligned_alloc"},
		{FAMILY_MIMALLOC, "mi_malloc", "mi_aligned_alloc"},
		{FAMILY_TCMALLOC, "tc_malloc_skip_new_handler", "tc_memalign"},
	};
	const struct hook_name *known = finder->mark[MARK_KNOWN_ALLOCATOR].name;
	uint8_t family = name->family != FAMILY_OPERATOR ? name->family : known ? known->of_family : FAMILY_C;
	bool is_aligned = name->function == FUNCTION_NEW_ALIGNED;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].family == family && (is_aligned || name->function == FUNCTION_NEW))
			return has_one_kind(finder, family)
				       ? find_name(finder, is_aligned ? rows[i].aligned : rows[i].plain)
				       : NULL;
	return NULL;
}

static void find_handlerless(struct finder *finder)
{
	for (uint32_t i = 0; i < finder->count; i++) {
		const struct finding *finding = &finder->finding[i], *found = handlerless_of(finder, finding->name);
		struct hook_target *target = &finder->image->targets[target_at(finder->image, finding->address)];
		if (found && target->function == finding->name->function && target->handlerless < 0)
			target->handlerless = target_at(finder->image, found->address);
	}
}

/* Return whether the address lies in the code of a heap function of this image. */
static bool is_in_heap_function(const struct hook_image *image, uint64_t address)
{
	for (uint32_t i = 0; i < image->target_count; i++)
		if (hook_target_is_heap(&image->targets[i]) && address >= image->targets[i].address &&
		    address - image->targets[i].address < image->targets[i].size)
			return true;
	return false;
}

/* Return whether a function is exported, or contains the address by its size. */
static bool is_in_named_function(const struct finder *finder, uint64_t address)
{
	uint64_t start = elf_unwind_start(&finder->elf, address);
	for (uint64_t i = 1; i < finder->dynamic.count; i++) {
		Elf64_Sym symbol = elf_symbol(&finder->dynamic, i);
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !is_defined(&symbol))
			continue;
		if (symbol.st_value == start ||
		    (address >= symbol.st_value && address - symbol.st_value < symbol.st_size))
			return true;
	}
	return false;
}

static void add_silent(struct hook_image *image, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < image->silent_count; i++) {
		struct hook_range *range = &image->silent[i];
		if (low <= range->high + SILENT_GAP_MAX && range->low <= high + SILENT_GAP_MAX) {
			range->low = low < range->low ? low : range->low;
			range->high = high > range->high ? high : range->high;
			return;
		}
	}
	if (image->silent_count < sizeof(image->silent) / sizeof(image->silent[0]))
		image->silent[image->silent_count++] = (struct hook_range){low, high};
}

/* Return whether a branch is in the function by which glibc frees the cached blocks of a thread that ends; it calls
   free directly. If symbols name that function, its whole range is silent. In a stripped libc.so its calls give it
   away. All other code there calls free through the PLT, so that a program's own free is used, except for realloc, an
   allocator's own function. */
static bool is_cache_shutdown(const struct finder *finder, const struct branch *branch)
{
	return finder->image->flavour == HOOK_FLAVOUR_GLIBC && !finder->is_static && branch->is_call &&
	       finder->image->targets[branch->target].function == FUNCTION_FREE &&
	       !is_in_named_function(finder, branch->site);
}

static void find_silent_calls(struct finder *finder)
{
	struct hook_image *image = finder->image;
	const struct finding *shutdown = &finder->mark[MARK_CACHE_SHUTDOWN];
	if (image->flavour != HOOK_FLAVOUR_GLIBC)
		return;
	if (shutdown->name && shutdown->size)
		return add_silent(image, shutdown->address, shutdown->address + shutdown->size);
	for (uint32_t i = 0; i < finder->branches.count; i++)
		if (is_cache_shutdown(finder, &finder->branches.list[i]))
			add_silent(image, finder->branches.list[i].after, finder->branches.list[i].after + 1);
}

static bool is_silent(const struct hook_image *image, uint64_t address)
{
	for (uint32_t i = 0; i < image->silent_count; i++)
		if (address >= image->silent[i].low && address < image->silent[i].high)
			return true;
	return false;
}

/* Find calls of the allocator by itself. In glibc's libc.so nothing else calls it directly. */
static void find_internal_calls(struct finder *finder)
{
	struct hook_image *image = finder->image;
	bool all = image->flavour == HOOK_FLAVOUR_GLIBC && !finder->is_static;
	for (uint32_t i = 0; i < finder->branches.count && image->internal_count < HOOK_INTERNAL_MAX; i++) {
		const struct branch *branch = &finder->branches.list[i];
		if (branch->is_call && hook_target_is_heap(&image->targets[branch->target]) &&
		    !is_silent(image, branch->after) && (all || is_in_heap_function(image, branch->site)))
			image->internal_returns[image->internal_count++] = branch->after;
	}
	qsort(image->internal_returns, image->internal_count, sizeof(image->internal_returns[0]), compare_u64);
}

static int inspect_code(struct finder *finder, struct diag *diag)
{
	struct hook_image *image = finder->image;
	int error = make_targets(finder, diag);
	if (error || image->target_count == 0)
		return error;
	image->usable_size = common_usable_size(image);
	find_handlerless(finder);
	refuse_shared_bytes(finder, &finder->dynamic);
	refuse_shared_bytes(finder, &finder->full);
	branches_find(&finder->branches, &finder->elf, image->targets, image->target_count);
	find_silent_calls(finder);
	find_internal_calls(finder);
	return 0;
}

static bool exports(const struct elf_symbols *symbols, const char *name)
{
	for (uint64_t i = 1; i < symbols->count; i++) {
		Elf64_Sym symbol = elf_symbol(symbols, i);
		if (is_defined(&symbol) && strcmp(elf_symbol_name(symbols, &symbol), name) == 0)
			return true;
	}
	return false;
}

/* Return whether only the kernel loads the image: it names no interpreter, and no libraries, as a program for a loader
   that is executed itself does. It must say that it is a program, or be run as one and be no loader. */
static bool is_static_program(const struct finder *finder, bool is_main)
{
	const struct elf *elf = &finder->elf;
	uint64_t flags = 0, needed;
	if (elf->has_interpreter || elf_dynamic_value(elf, DT_NEEDED, &needed))
		return false;
	if (elf->header.e_type == ET_EXEC)
		return true;
	if (elf_dynamic_value(elf, DT_FLAGS_1, &flags) && (flags & DF_1_PIE))
		return true;
	return is_main && !exports(&finder->dynamic, "_dl_debug_state");
}

int hook_image_read(struct hook_image *image, const void *data, size_t size, bool is_main, struct diag *diag)
{
	*image = (struct hook_image){0};
	struct finder *finder = calloc(1, sizeof(*finder));
	if (!finder)
		return diag_fail(diag, ENOMEM, "no memory");
	finder->image = image;
	int error = elf_open(&finder->elf, data, size, diag);
	if (!error) {
		finder->dynamic = elf_dynamic_symbols(&finder->elf);
		finder->full = elf_full_symbols(&finder->elf);
		finder->is_static = is_static_program(finder, is_main);
		image->is_dynamic = !finder->is_static;
		take_symbols(finder, &finder->dynamic, true);
		take_symbols(finder, &finder->full, false);
		image->contexts = context_symbol_find(&finder->elf,
						      finder->is_static ? &finder->full : &finder->dynamic, is_main);
		take_annotations(finder);
		take_requests(finder);
		describe(finder);
		keep_what_counts(finder);
		error = inspect_code(finder, diag);
	}
	free(finder);
	if (error)
		hook_image_fini(image);
	return error;
}

void hook_image_fini(struct hook_image *image)
{
	free(image->targets);
	image->targets = NULL;
	image->target_count = 0;
}
