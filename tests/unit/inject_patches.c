/* SPDX-License-Identifier: MIT */
/* Patches of an image that lies in an array of bytes: what is written, what is refused, and what stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/patch_bytes.h"
#include "base/requests.h"
#include "inject/jumps.h"
#include "inject/patches.h"
#include "inject/recorder_blob.h"
#include "inject/remote.h"
#include "recorder/recorder.h"

enum { PAGE = 4096, ISLAND_BYTES = 64 << 10, ENTRY = 0x200, ENTRY_BYTES = 64, IMAGE_BYTES = 4 * PAGE };

#define IMAGE UINT64_C(0x7f0000000000)
#define LOW_IMAGE UINT64_C(0x400000)
#define ISLAND (IMAGE + (64 << 20))
#define RECORDER UINT64_C(0x7e0000000000)

/* push %rbp; mov %rsp, %rbp; sub $16, %rsp; ret */
static const unsigned char entry_code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc3};
enum { DISPLACED = 8 };

/* A process: its memory is a file with holes. */
struct process {
	struct inject inject;
	struct inject_image image;
	struct region region;
	struct hook_image hooks;
	struct hook_target targets[4];
	uint64_t base;
};

static void target_set(struct process *process, unsigned index, uint8_t function, const char *name)
{
	struct hook_target *target = &process->targets[index];
	uint64_t address = ENTRY + (uint64_t)index * ENTRY_BYTES;
	*target = (struct hook_target){
		.function = function, .address = address, .displaced = DISPLACED, .handlerless = -1};
	snprintf(target->name, sizeof(target->name), "%s", name);
	memcpy(target->original, entry_code, sizeof(entry_code));
	assert_true(remote_write(process->inject.memory, process->base + address, entry_code, sizeof(entry_code)));
	process->hooks.target_count = index + 1;
}

/* An image at `base` whose targets are malloc and free, and an island. */
static void process_begin(struct process *process, uint64_t base)
{
	static const struct region_config config = {.buffer_size = 4096, .buffer_min = 2, .buffer_max = 4};
	static const char path[] = "region.patches";
	struct diag diag = {""};
	*process = (struct process){.base = base};
	assert_int_equal(region_create(&process->region, AT_FDCWD, path, path, &config, &diag), 0);
	unlink(path);
	process->inject = (struct inject){.pid = getpid(),
					  .memory = memfd_create("process", MFD_CLOEXEC),
					  .region = &process->region,
					  .recorder = RECORDER,
					  .fork_wiped = RECORDER + RECORDER_DATA_BYTES,
					  .region_address = RECORDER - (1 << 30),
					  .text = ISLAND - (1 << 20),
					  .island = {{ISLAND, ISLAND, ISLAND + ISLAND_BYTES}},
					  .island_count = 1};
	process->image = (struct inject_image){.base = base, .end = base + IMAGE_BYTES, .bias = base};
	process->hooks =
		(struct hook_image){.targets = process->targets, .flavour = HOOK_FLAVOUR_GLIBC, .defines_malloc = true};
	struct region_header *there = process->region.header;
	assert_true(remote_write(process->inject.memory, RECORDER + offsetof(struct recorder, region), &there,
				 sizeof(there)));
	target_set(process, 0, FUNCTION_MALLOC, "malloc");
	target_set(process, 1, FUNCTION_FREE, "free");
}

static void process_end(struct process *process)
{
	free(process->inject.jump);
	close(process->inject.memory);
	region_close(&process->region);
}

static void patch(struct process *process)
{
	patch_image(&process->inject, &process->hooks, &process->image, "/lib/libc.so", false);
}

/* Read the entry of a target. */
static void entry_read(const struct process *process, unsigned index, unsigned char *bytes)
{
	assert_true(remote_read(process->inject.memory, process->base + process->targets[index].address, bytes,
				sizeof(entry_code)));
}

static void check_untouched(const struct process *process, unsigned index)
{
	unsigned char now[sizeof(entry_code)];
	entry_read(process, index, now);
	assert_memory_equal(now, process->targets[index].original, sizeof(now));
}

/* Return where a patched entry leads; its bytes behind the jump are as before. */
static uint64_t check_patched(const struct process *process, unsigned index)
{
	unsigned char now[sizeof(entry_code)];
	uint64_t to;
	entry_read(process, index, now);
	assert_true(patch_get_jump(now, process->base + process->targets[index].address, &to));
	assert_memory_equal(now + HOOK_PATCH_BYTES, entry_code + HOOK_PATCH_BYTES, sizeof(now) - HOOK_PATCH_BYTES);
	return to;
}

static void test_entries(void **state)
{
	struct process process;
	(void)state;
	process_begin(&process, IMAGE);
	patch(&process);
	const struct inject *inject = &process.inject;
	assert_int_equal(inject->refused, 0);
	assert_int_equal(inject->jump_count, 2);
	assert_true(inject->has_allocator);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t to = check_patched(&process, i);
		assert_true(to >= inject->island[0].low && to < inject->island[0].next);
		assert_int_equal(inject->jump[i].address, IMAGE + process.targets[i].address);
		assert_memory_equal(inject->jump[i].original, entry_code, HOOK_PATCH_BYTES);
		/* The copy of the instructions that moved. */
		unsigned char moved[DISPLACED];
		assert_true(remote_read(inject->memory, inject->jump[i].moved, moved, sizeof(moved)));
		assert_memory_equal(moved, entry_code, sizeof(moved));
		assert_int_equal(inject->jump[i].offsets[0], 0);
		assert_int_equal(inject->jump[i].offsets[1], 1);
		assert_int_equal(inject->jump[i].offsets[2], -1);
		assert_int_equal(inject->jump[i].offsets[4], 4);
	}
	assert_int_equal(process.region.entry_ready, 2);
	assert_string_equal(region_entry(&process.region, 1)->name, "free");
	assert_int_equal(process.image.stubs[0].low, ISLAND);
	assert_int_equal(process.image.stubs[0].high, inject->island[0].next);
	assert_int_equal(inject->island[0].next % 64, 0);
	assert_false(process.image.is_doubtful);
	process_end(&process);
}

/* An image that is loaded again gets the rows that it had, and the memory of its stubs. */
static void test_again(void **state)
{
	struct process process;
	(void)state;
	process_begin(&process, IMAGE);
	patch(&process);
	uint64_t next = process.inject.island[0].next;
	patches_forget(&process.inject, &process.image);
	assert_int_equal(process.inject.jump_count, 0);
	assert_int_equal(process.inject.island[0].next, ISLAND);
	for (unsigned i = 0; i < 2; i++)
		assert_true(remote_write(process.inject.memory, IMAGE + process.targets[i].address, entry_code,
					 sizeof(entry_code)));
	patch(&process);
	assert_int_equal(process.inject.jump_count, 2);
	assert_int_equal(process.inject.island[0].next, next);
	assert_int_equal(process.region.entry_ready, 2);
	process_end(&process);
}

/* Entries are only noted while threads may be at them; their stubs are whole. */
static void test_gathered(void **state)
{
	struct process process;
	unsigned char stub[16], nothing[sizeof(stub)] = {0};
	(void)state;
	process_begin(&process, IMAGE);
	process.inject.is_gathering = true;
	patch(&process);
	assert_int_equal(process.inject.jump_count, 2);
	check_untouched(&process, 0);
	check_untouched(&process, 1);
	assert_true(remote_read(process.inject.memory, process.inject.jump[0].moved, stub, sizeof(stub)));
	assert_memory_not_equal(stub, nothing, sizeof(stub));
	process_end(&process);
}

static void test_breakpoint(void **state)
{
	struct process process;
	(void)state;
	process_begin(&process, IMAGE);
	unsigned char trap = 0xcc;
	assert_true(remote_write(process.inject.memory, IMAGE + ENTRY, &trap, 1));
	patch(&process);
	assert_int_equal(process.inject.refused, 1);
	assert_non_null(
		strstr(process.inject.refusal, "malloc of /lib/libc.so: its first bytes are not those of the file"));
	assert_true(process.image.is_doubtful);
	assert_int_equal(process.inject.jump_count, 1);
	check_patched(&process, 1);
	process_end(&process);
}

/* The process that forked this one has patched the entry. */
static void test_patched_by_parent(void **state)
{
	struct process process;
	unsigned char jump[HOOK_PATCH_BYTES], now[sizeof(entry_code)];
	(void)state;
	process_begin(&process, IMAGE);
	patch_put_jump(jump, IMAGE + ENTRY, ISLAND + 100);
	assert_true(remote_write(process.inject.memory, IMAGE + ENTRY, jump, sizeof(jump)));
	patch(&process);
	assert_int_equal(process.inject.refused, 0);
	assert_int_equal(process.inject.jump_count, 1);
	entry_read(&process, 0, now);
	assert_memory_equal(now, jump, sizeof(jump));
	/* A jump to elsewhere is somebody's. */
	patch_put_jump(jump, IMAGE + ENTRY, ISLAND + ISLAND_BYTES);
	assert_true(remote_write(process.inject.memory, IMAGE + ENTRY, jump, sizeof(jump)));
	patch(&process);
	assert_int_equal(process.inject.refused, 1);
	process_end(&process);
}

static void test_not_movable(void **state)
{
	struct process process;
	(void)state;
	process_begin(&process, IMAGE);
	process.targets[0].displaced = 0;
	process.targets[0].reason = "it is too short";
	patch(&process);
	assert_int_equal(process.inject.refused, 1);
	assert_non_null(strstr(process.inject.refusal, "it is too short"));
	process.targets[0].reason = NULL;
	patch(&process);
	assert_non_null(strstr(process.inject.refusal, "its first instructions cannot be moved"));
	/* Without its start, nothing is missed. */
	uint32_t refused = process.inject.refused;
	process.targets[0].function = HOOK_START;
	patch(&process);
	assert_int_equal(process.inject.refused, refused);
	check_untouched(&process, 0);
	process_end(&process);
}

static void test_out_of_reach(void **state)
{
	struct process process;
	(void)state;
	process_begin(&process, IMAGE);
	struct inject_island *island = &process.inject.island[0];
	*island = (struct inject_island){IMAGE + (UINT64_C(4) << 30), IMAGE + (UINT64_C(4) << 30),
					 IMAGE + (UINT64_C(4) << 30) + ISLAND_BYTES};
	patch(&process);
	assert_int_equal(process.inject.refused, 2);
	assert_non_null(strstr(process.inject.refusal, "no free memory within reach"));
	/* One that is full is as far. */
	*island = (struct inject_island){ISLAND, ISLAND + ISLAND_BYTES - REMOTE_GATE_BYTES, ISLAND + ISLAND_BYTES};
	patch(&process);
	assert_int_equal(process.inject.refused, 4);
	assert_int_equal(process.inject.jump_count, 0);
	check_untouched(&process, 0);
	process_end(&process);
}

/* Memory that can only be read, or that is gone. */
static void test_not_writable(void **state)
{
	struct process process;
	char path[64];
	(void)state;
	process_begin(&process, IMAGE);
	int memory = process.inject.memory;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	process.inject.memory = open(path, O_RDONLY | O_CLOEXEC);
	patch(&process);
	assert_int_equal(process.inject.refused, 2);
	assert_non_null(strstr(process.inject.refusal, "its memory cannot be written"));
	assert_int_equal(process.inject.jump_count, 0);
	assert_int_equal(process.inject.island[0].next, ISLAND);
	check_untouched(&process, 0);
	close(process.inject.memory);
	/* A process that has ended lacks no hook. */
	process.inject.memory = memfd_create("empty", MFD_CLOEXEC);
	process.inject.refused = 0;
	patch(&process);
	assert_int_equal(process.inject.refused, 0);
	assert_int_equal(process.inject.jump_count, 0);
	close(process.inject.memory);
	process.inject.memory = memory;
	process_end(&process);
}

static void test_too_many_entries(void **state)
{
	struct process process;
	(void)state;
	process_begin(&process, IMAGE);
	for (uint32_t i = 0; i < REGION_ENTRY_MAX; i++) {
		struct region_entry entry = {.address = 1 + i, .function = FUNCTION_MALLOC};
		assert_int_equal(region_add_entry(&process.region, &entry), i);
	}
	patch(&process);
	assert_int_equal(process.inject.refused, 2);
	assert_non_null(strstr(process.inject.refusal, "too many functions"));
	assert_int_equal(process.inject.jump_count, 0);
	assert_int_equal(process.inject.island[0].next, ISLAND);
	check_untouched(&process, 0);
	process_end(&process);
}

/* All requests of an image share their contexts. */
static void test_requests(void **state)
{
	struct process process;
	struct hook_context contexts[REQUEST_SPAN];
	(void)state;
	process_begin(&process, IMAGE);
	target_set(&process, 2, HOOK_REQUEST, "request");
	target_set(&process, 3, HOOK_REQUEST, "request");
	patch(&process);
	assert_int_equal(process.inject.refused, 0);
	assert_int_equal(process.inject.jump_count, 4);
	assert_true(process.image.requests >= ISLAND && process.image.requests < process.inject.island[0].next);
	assert_true(remote_read(process.inject.memory, process.image.requests, contexts, sizeof(contexts)));
	unsigned named = 0;
	for (unsigned i = 0; i < REQUEST_SPAN; i++) {
		assert_int_equal((uint64_t)contexts[i].recorder, RECORDER);
		assert_int_equal(contexts[i].allocator_base, IMAGE);
		if (!contexts[i].call_entry)
			continue;
		named++;
		assert_int_equal(region_entry(&process.region, contexts[i].call_entry - 1)->function,
				 contexts[i].function);
	}
	assert_true(named > 0);
	/* There is no room for them. */
	process_end(&process);
	process_begin(&process, IMAGE);
	target_set(&process, 2, HOOK_REQUEST, "request");
	process.inject.island[0].high = ISLAND + sizeof(contexts);
	process.hooks.targets += 2;
	process.hooks.target_count = 1;
	patch(&process);
	assert_int_equal(process.image.requests, 0);
	assert_int_equal(process.inject.jump_count, 0);
	process_end(&process);
}

static void words_write(const struct process *process, uint64_t table, uint64_t first)
{
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++) {
		uint64_t word = first + i * ENTRY_BYTES;
		assert_true(remote_write(process->inject.memory, IMAGE + table + (i + 1) * sizeof(word), &word,
					 sizeof(word)));
	}
}

static uint64_t word_read(const struct process *process, uint64_t table, unsigned i)
{
	uint64_t word = 0;
	assert_true(remote_read(process->inject.memory, IMAGE + table + (i + 1) * sizeof(word), &word, sizeof(word)));
	return word;
}

/* An interpreter whose allocator's functions are the first targets. */
static void python_set(struct process *process, uint64_t objects, uint64_t memory, uint64_t ways)
{
	process->inject.with_objects = true;
	process->hooks.python = (struct hook_python){.version = HOOK_PYTHON_FIRST,
						     .eval = ENTRY,
						     .eval_bytes = ENTRY_BYTES,
						     .own_state = ENTRY,
						     .code_type = objects,
						     .objects = {.tables = {objects, memory}, .ways = ways}};
	for (unsigned i = 0; i < HOOK_PYTHON_FUNCTIONS; i++)
		process->hooks.python.objects.functions[i] = ENTRY + i * ENTRY_BYTES;
}

/* Words of Python's tables, and of copies of these, are changed where they name the functions when the jumps are
   written. The program may write others before and after that. */
static void test_python_tables(void **state)
{
	enum { OBJECTS = 0x2000, MEMORY = 0x2040, COPY = 0x2ff8, OTHER = 0x600, WAYS = 0x1800, WORDS = 4 };
	const uint64_t function = IMAGE + ENTRY, way = IMAGE + WAYS, other = IMAGE + OTHER;
	const Elf64_Phdr data = {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = OBJECTS, .p_memsz = 2 * PAGE};
	const Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
				   .e_phoff = sizeof(header),
				   .e_phentsize = sizeof(data),
				   .e_phnum = 1};
	struct process process;
	struct inject *inject = &process.inject;
	(void)state;
	process_begin(&process, IMAGE);
	assert_true(remote_write(inject->memory, IMAGE, &header, sizeof(header)));
	assert_true(remote_write(inject->memory, IMAGE + sizeof(header), &data, sizeof(data)));
	inject->is_gathering = true;
	python_set(&process, OBJECTS, MEMORY, WAYS);
	words_write(&process, OBJECTS, function);
	words_write(&process, MEMORY, other);
	words_write(&process, COPY, function);
	words_write(&process, COPY + PAGE - 4 * WORDS, function + 8);
	patch(&process);
	assert_int_equal(inject->refused, 0);
	assert_int_equal(inject->jump_count, 2 + 3 * WORDS);
	assert_int_equal(word_read(&process, OBJECTS, 0), function);
	/* The program has put another allocator above, and taken one away. */
	words_write(&process, OBJECTS, other);
	words_write(&process, MEMORY, function);
	assert_true(jumps_write(inject->memory, inject->jump, inject->jump_count));
	for (unsigned i = 0; i < WORDS; i++) {
		assert_int_equal(word_read(&process, OBJECTS, i), other + i * ENTRY_BYTES);
		assert_int_equal(word_read(&process, MEMORY, i), way + i * PATCH_MARKED_JUMP_BYTES);
		assert_int_equal(word_read(&process, COPY, i), way + i * PATCH_MARKED_JUMP_BYTES);
	}
	inject->image = &process.image;
	inject->image_count = 1;
	patches_check_words(inject);
	assert_int_equal(inject->refused, 0);
	words_write(&process, COPY, other);
	patches_check_words(inject);
	assert_int_equal(inject->refused, 1);
	assert_non_null(strstr(inject->refusal, "another allocator"));
	assert_true(jumps_undo(inject->memory, inject->jump, inject->jump_count, true));
	for (unsigned i = 0; i < WORDS; i++) {
		assert_int_equal(word_read(&process, OBJECTS, i), other + i * ENTRY_BYTES);
		assert_int_equal(word_read(&process, MEMORY, i), function + i * ENTRY_BYTES);
		assert_int_equal(word_read(&process, COPY, i), other + i * ENTRY_BYTES);
	}
	/* Other bytes at an entry are no change of its own. */
	assert_true(remote_write(inject->memory, function, "x", 1));
	assert_false(jumps_write(inject->memory, inject->jump, inject->jump_count));
	process_end(&process);
}

/* Headers of a target that name memory outside of its image, all of it, or one segment again and again: what lies there
   is not read, and a copy is found once. */
static void test_hostile_segments(void **state)
{
	enum { OBJECTS = 0x2000, MEMORY = 0x2040, COPY = 0x2ff8, OTHER = 0x600, WAYS = 0x1800, HEADERS = 0x1000, WORDS = 4 };
	enum { OUTSIDE = 8 };
	const uint64_t function = IMAGE + ENTRY, far = UINT64_C(1) << 45;
	const struct {
		uint64_t address, bytes;
	} spans[] = {{OUTSIDE * PAGE, PAGE},   {0 - far, far},         {0, 2 * far},
		     {OBJECTS, UINT64_MAX},    {OBJECTS, 3 * PAGE},    {OBJECTS, 2 * PAGE},
		     {OBJECTS, 2 * PAGE},      {OBJECTS + 8, PAGE},    {UINT64_MAX, 2},
		     {IMAGE_BYTES, PAGE}};
	enum { COUNT = sizeof(spans) / sizeof(spans[0]) };
	const Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
				   .e_phoff = HEADERS,
				   .e_phentsize = sizeof(Elf64_Phdr),
				   .e_phnum = COUNT};
	Elf64_Phdr data[COUNT];
	struct process process;
	struct inject *inject = &process.inject;
	(void)state;
	for (unsigned i = 0; i < COUNT; i++)
		data[i] = (Elf64_Phdr){.p_type = PT_LOAD,
				       .p_flags = PF_R | PF_W,
				       .p_vaddr = spans[i].address,
				       .p_memsz = spans[i].bytes};
	process_begin(&process, IMAGE);
	assert_true(remote_write(inject->memory, IMAGE, &header, sizeof(header)));
	assert_true(remote_write(inject->memory, IMAGE + HEADERS, &data, sizeof(data)));
	inject->is_gathering = true;
	python_set(&process, OBJECTS, MEMORY, WAYS);
	words_write(&process, OBJECTS, IMAGE + OTHER);
	words_write(&process, MEMORY, IMAGE + OTHER);
	words_write(&process, COPY, function);
	words_write(&process, OUTSIDE * PAGE, function);
	words_write(&process, IMAGE_BYTES, function);
	patch(&process);
	assert_int_equal(inject->refused, 0);
	assert_int_equal(inject->jump_count, 2 + 3 * WORDS);
	assert_true(jumps_write(inject->memory, inject->jump, inject->jump_count));
	for (unsigned i = 0; i < WORDS; i++) {
		assert_int_not_equal(word_read(&process, COPY, i), function + i * ENTRY_BYTES);
		assert_int_equal(word_read(&process, OUTSIDE * PAGE, i), function + i * ENTRY_BYTES);
		assert_int_equal(word_read(&process, IMAGE_BYTES, i), function + i * ENTRY_BYTES);
	}
	process_end(&process);
}

/* What the recorder has of the first interpreter. */
struct interpreter {
	struct recorder_python python;
	struct recorder_object_tables tables;
	uint32_t has_stale_ids;
};

static struct interpreter interpreter_read(const struct process *process)
{
	static const struct {
		size_t from, to, bytes;
	} fields[] = {{offsetof(struct recorder, python), offsetof(struct interpreter, python),
		       sizeof(struct recorder_python)},
		      {offsetof(struct recorder, objects.tables), offsetof(struct interpreter, tables),
		       sizeof(struct recorder_object_tables)},
		      {offsetof(struct recorder, python_ids_are_stale), offsetof(struct interpreter, has_stale_ids),
		       sizeof(uint32_t)}};
	struct interpreter interpreter;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		assert_true(remote_read(process->inject.memory, RECORDER + fields[i].from,
					(char *)&interpreter + fields[i].to, fields[i].bytes));
	return interpreter;
}

/* Of an interpreter that is unloaded nothing stays: a later one at the same place may have its tables elsewhere. */
static void test_python_unloaded(void **state)
{
	enum { OBJECTS = 0x2000, MEMORY = 0x2040, WAYS = 0x1800, FIELD = sizeof(uint64_t) };
	struct process process;
	const uint64_t function = IMAGE + ENTRY;
	const struct recorder_object_tables no_tables = {.base = 0};
	const struct inject_image other = {.base = IMAGE + (1 << 20), .end = IMAGE + (2 << 20)};
	(void)state;
	process_begin(&process, IMAGE);
	/* The memory reads as zeros up to here. */
	assert_true(ftruncate(process.inject.memory, (off_t)(IMAGE + (3 << 20))) == 0);
	python_set(&process, OBJECTS, MEMORY, WAYS);
	words_write(&process, OBJECTS, function);
	words_write(&process, MEMORY, function);
	patch(&process);
	assert_int_equal(process.inject.refused, 0);
	patches_forget(&process.inject, &other);
	struct interpreter known = interpreter_read(&process);
	assert_int_equal(known.python.version, HOOK_PYTHON_FIRST);
	assert_int_equal(known.python.eval_high - known.python.eval_low, ENTRY_BYTES);
	assert_int_equal(known.tables.base, IMAGE);
	assert_int_equal(known.tables.table[1], IMAGE + MEMORY);
	assert_false(known.has_stale_ids);
	patches_forget(&process.inject, &process.image);
	const struct interpreter left = interpreter_read(&process);
	assert_int_equal(left.python.version, 0);
	assert_int_equal(left.python.eval_high, left.python.eval_low);
	assert_int_equal(left.python.own_state, 0);
	assert_int_equal(left.python.code_type, 0);
	assert_memory_equal(&left.tables, &no_tables, sizeof(no_tables));
	assert_true(left.has_stale_ids);
	/* One without tables that are changed. */
	for (unsigned i = 0; i < 2; i++)
		assert_true(remote_write(process.inject.memory, IMAGE + process.targets[i].address, entry_code,
					 sizeof(entry_code)));
	python_set(&process, OBJECTS + FIELD, MEMORY + FIELD, 0);
	patch(&process);
	known = interpreter_read(&process);
	assert_int_equal(known.python.version, HOOK_PYTHON_FIRST);
	assert_int_equal(known.python.code_type, IMAGE + OBJECTS + FIELD);
	assert_memory_equal(&known.tables, &no_tables, sizeof(no_tables));
	process_end(&process);
}

/* Write the headers of an executable in low memory, whose code leaves `spare` bytes of its last page. */
static void write_headers(const struct process *process, uint64_t spare)
{
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_EXEC,
			     .e_phoff = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1};
	Elf64_Phdr load = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_vaddr = process->base,
			   .p_filesz = IMAGE_BYTES - spare,
			   .p_memsz = IMAGE_BYTES - spare};
	assert_true(remote_write(process->inject.memory, process->base, &header, sizeof(header)));
	assert_true(remote_write(process->inject.memory, process->base + sizeof(header), &load, sizeof(load)));
	assert_true(ftruncate(process->inject.memory, (off_t)(RECORDER + (1 << 20))) == 0);
}

/* The entries of an executable in low memory jump to doors in its last page, which lead to an island far away. */
static void test_doors(void **state)
{
	struct process process;
	unsigned char door[HOOK_FAR_JUMP_BYTES], expected[sizeof(door)], back[2 * INJECT_DOOR_BYTES];
	const struct region_image executable = {.base = LOW_IMAGE, .end = LOW_IMAGE + IMAGE_BYTES};
	(void)state;
	process_begin(&process, LOW_IMAGE);
	write_headers(&process, 1024);
	unsigned char filling[1024];
	memset(filling, 0x90, sizeof(filling));
	assert_true(remote_write(process.inject.memory, LOW_IMAGE + IMAGE_BYTES - sizeof(filling), filling,
				 sizeof(filling)));
	doors_open(&process.inject, &executable, 2);
	const struct inject_doors *doors = &process.inject.doors;
	assert_int_equal(doors->high, LOW_IMAGE + IMAGE_BYTES);
	assert_int_equal(doors->low, doors->high - 2 * INJECT_DOOR_BYTES);
	patch(&process);
	assert_int_equal(process.inject.refused, 0);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t to = check_patched(&process, i);
		assert_int_equal(to, doors->low + i * INJECT_DOOR_BYTES);
		assert_true(remote_read(process.inject.memory, to, door, sizeof(door)));
		/* The jump's address lies in the island, at the entry of the stub. */
		uint64_t entry_at = 0;
		memcpy(&entry_at, door + sizeof(door) - sizeof(entry_at), sizeof(entry_at));
		assert_true(entry_at >= ISLAND && entry_at < process.inject.island[0].next);
		patch_put_far_jump(expected, entry_at);
		assert_memory_equal(door, expected, sizeof(door));
	}
	/* No third one. */
	target_set(&process, 2, FUNCTION_CALLOC, "calloc");
	process.hooks.targets += 2;
	process.hooks.target_count = 1;
	patch(&process);
	assert_int_equal(process.inject.refused, 1);
	inject_close_doors(&process.inject, process.inject.memory);
	assert_true(remote_read(process.inject.memory, doors->low, back, sizeof(back)));
	assert_memory_equal(back, filling, sizeof(back));
	process_end(&process);
}

static void test_doors_fit(void **state)
{
	struct process process;
	struct inject_doors doors;
	struct region_image executable = {.base = LOW_IMAGE, .end = LOW_IMAGE + IMAGE_BYTES};
	(void)state;
	process_begin(&process, LOW_IMAGE);
	write_headers(&process, 512);
	int memory = process.inject.memory;
	const uint32_t most = (512 - REMOTE_GATE_BYTES) / INJECT_DOOR_BYTES;
	assert_true(doors_fit(memory, &executable, LOW_IMAGE, most, &doors));
	assert_false(doors_fit(memory, &executable, LOW_IMAGE, most + 1, &doors));
	assert_false(doors_fit(memory, &executable, LOW_IMAGE, 0, &doors));
	assert_false(doors_fit(memory, &executable, LOW_IMAGE, INJECT_DOOR_MAX + 1, &doors));
	/* Headers that make no sense. */
	assert_false(doors_fit(memory, &executable, LOW_IMAGE + PAGE, 1, &doors));
	executable.end = LOW_CODE_END + 1;
	assert_false(doors_fit(memory, &executable, LOW_IMAGE, 1, &doors));
	process_end(&process);
}

/* Memory that unloaded images have left is used again, in whichever order they go. */
static void test_freed(void **state)
{
	enum { IMAGES = 3 };
	struct process process;
	struct inject_image images[IMAGES];
	(void)state;
	for (int last = 0; last < IMAGES; last++) {
		process_begin(&process, IMAGE);
		for (int i = 0; i < IMAGES; i++) {
			/* As other images in the same file's place. */
			for (unsigned k = 0; k < 2; k++)
				assert_true(remote_write(process.inject.memory, IMAGE + process.targets[k].address,
							 entry_code, sizeof(entry_code)));
			patch(&process);
			images[i] = process.image;
		}
		for (int i = 0; i < IMAGES; i++)
			patches_forget(&process.inject, &images[(last + 1 + i) % IMAGES]);
		assert_int_equal(process.inject.island[0].next, ISLAND);
		assert_int_equal(process.inject.freed_count, 0);
		process_end(&process);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_gathered),
		cmocka_unit_test(test_breakpoint),
		cmocka_unit_test(test_patched_by_parent),
		cmocka_unit_test(test_not_movable),
		cmocka_unit_test(test_out_of_reach),
		cmocka_unit_test(test_not_writable),
		cmocka_unit_test(test_too_many_entries),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_python_tables),
		cmocka_unit_test(test_hostile_segments),
		cmocka_unit_test(test_python_unloaded),
		cmocka_unit_test(test_doors),
		cmocka_unit_test(test_doors_fit),
		cmocka_unit_test(test_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
