/* SPDX-License-Identifier: MIT */
/* What an earlier recording left in a process, which is this test itself. All that is read there may be wrong: no memory
   of an image, a stack or the heap is unmapped, and nothing is restored but what leads into the recording's code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/patch_bytes.h"
#include "inject/remains.h"
#include "inject/remote.h"
#include "recorder/recorder.h"
#include "region/layout.h"

enum { PAGE = 4096, REGION_BYTES = 16 * PAGE, IMAGE_BYTES = 4 * PAGE, CALLS_MAX = 8192 };

static const char region_path[] = "region.7", image_path[] = "image";

/* What a recording leaves, and the image that it has patched. */
struct left {
	struct region_header *region;
	struct recorder_mappings list;
	struct recorder_pool *newest;
	unsigned char *code, *data, *pool, *image;
	struct proc_map *maps;
	int map_count, memory;
	struct pieces pieces;
};

static void *map(size_t bytes, int protection)
{
	void *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED);
	return at;
}

static void *map_file(const char *path, size_t bytes, int protection, int flags)
{
	int file = open(path, O_RDWR | O_CLOEXEC);
	void *at = mmap(NULL, bytes, protection, flags, file, 0);
	assert_true(file >= 0 && at != MAP_FAILED);
	close(file);
	return at;
}

static void make_file(const char *path, size_t bytes, unsigned char byte)
{
	unsigned char *content = malloc(bytes);
	memset(content, byte, bytes);
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(file >= 0 && write(file, content, bytes) == (ssize_t)bytes);
	close(file);
	free(content);
}

static void read_maps(struct left *left)
{
	free(left->maps);
	left->map_count = proc_read_maps(getpid(), &left->maps);
	assert_true(left->map_count > 0);
}

static void left_begin(struct left *left)
{
	memset(left, 0, sizeof(*left));
	make_file(region_path, REGION_BYTES, 0);
	make_file(image_path, IMAGE_BYTES, 0x90);
	left->memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	left->region = map_file(region_path, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED);
	left->image = map_file(image_path, IMAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	/* Apart from each other: neighbours with the same rights are one line of the maps. */
	left->code = map(2 * PAGE, PROT_READ | PROT_EXEC);
	left->data = (unsigned char *)map(4 * PAGE, PROT_NONE) + PAGE;
	assert_int_equal(mprotect(left->data, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	left->pool = (unsigned char *)map(4 * PAGE, PROT_NONE) + PAGE;
	assert_int_equal(mprotect(left->pool, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	left->newest = (struct recorder_pool *)left->pool;
	*left->newest = (struct recorder_pool){.bytes = 2 * PAGE};
	left->list = (struct recorder_mappings){.magic = RECORDER_MAPPINGS_MAGIC,
						.region = (uint64_t)left->region,
						.data = {(uint64_t)left->data, (uint64_t)left->data + 2 * PAGE},
						.mapping = {{(uint64_t)left->code, (uint64_t)left->code + 2 * PAGE}},
						.pools = (uint64_t)&left->newest};
	left->region->magic = REGION_MAGIC;
	left->region->version = REGION_VERSION;
	left->region->limits.region_bytes = REGION_BYTES;
	left->region->state = REGION_DETACHED;
	left->region->mappings = (uint64_t)&left->list;
	read_maps(left);
}

static void left_end(struct left *left)
{
	munmap(left->region, REGION_BYTES);
	munmap(left->image, IMAGE_BYTES);
	munmap(left->code, 2 * PAGE);
	munmap(left->data - PAGE, 4 * PAGE);
	munmap(left->pool - PAGE, 4 * PAGE);
	free(left->maps);
	close(left->memory);
	unlink(region_path);
	unlink(image_path);
}

static bool find(struct left *left)
{
	return pieces_find(&left->pieces, left->memory, left->maps, left->map_count, 0);
}

/* ---- pieces ---- */

static void test_pieces(void **state)
{
	struct left left;
	(void)state;
	left_begin(&left);
	assert_true(find(&left));
	assert_int_equal(left.pieces.count, 3);
	assert_int_equal(left.pieces.code_count, 1);
	assert_int_equal(left.pieces.item[0].low, (uint64_t)left.code);
	assert_int_equal(left.pieces.item[0].noted_at, (uint64_t)&left.list.mapping[0]);
	assert_int_equal(left.pieces.item[1].low, (uint64_t)left.data);
	assert_false(left.pieces.item[1].is_code);
	assert_int_equal(left.pieces.item[2].low, (uint64_t)left.region);
	assert_int_equal(left.pieces.bytes, 2 * PAGE + 2 * PAGE + REGION_BYTES);
	left_end(&left);
}

/* Regions that somebody records into, or that are none. */
static void test_other_regions(void **state)
{
	struct left left;
	struct stat status;
	(void)state;
	left_begin(&left);
	struct region_header before = *left.region;
	left.region->state = 0;
	left.region->owner = 1;
	assert_false(find(&left));
	/* But the one that is meant. */
	assert_int_equal(stat(region_path, &status), 0);
	assert_true(pieces_find(&left.pieces, left.memory, left.maps, left.map_count, status.st_ino));
	left.region->owner = REGION_OWNER_DIED;
	assert_true(find(&left));
	/* One whose attach came to nothing is in no directory any more. */
	left.region->owner = 0;
	assert_false(find(&left));
	unlink(region_path);
	read_maps(&left);
	assert_true(find(&left));
	*left.region = before;
	left.region->magic++;
	assert_false(find(&left));
	*left.region = before;
	left.region->version++;
	assert_false(find(&left));
	*left.region = before;
	left.region->limits.region_bytes += PAGE;
	assert_false(find(&left));
	*left.region = before;
	assert_true(find(&left));
	left_end(&left);
}

/* A list that is none, or of another region, names nothing. */
static void test_other_lists(void **state)
{
	struct left left;
	(void)state;
	left_begin(&left);
	left.list.magic++;
	assert_true(find(&left) && left.pieces.count == 1 && !left.pieces.code_count);
	left.list.magic--;
	left.list.region += PAGE;
	assert_true(find(&left) && left.pieces.count == 1);
	left.list.region -= PAGE;
	left.region->mappings = 0;
	assert_true(find(&left) && left.pieces.count == 1);
	left.region->mappings = 8;
	assert_true(find(&left) && left.pieces.count == 1);
	left.region->mappings = UINT64_MAX - 8;
	assert_true(find(&left) && left.pieces.count == 1);
	left_end(&left);
}

static char of_the_program[2 * PAGE];

/* What a hostile process could name in its list: the program's own memory, or what is not mapped. */
static void test_hostile_pieces(void **state)
{
	struct left left;
	int local;
	(void)state;
	left_begin(&left);
	const uint64_t code = (uint64_t)left.code, stack = (uint64_t)&local & ~(uint64_t)(PAGE - 1),
		       program = ((uint64_t)of_the_program + PAGE - 1) & ~(uint64_t)(PAGE - 1),
		       heap = (uint64_t)sbrk(0) & ~(uint64_t)(PAGE - 1);
	const struct recorder_mapping rows[] = {
		{(uint64_t)left.image, (uint64_t)left.image + PAGE}, /* an image */
		{stack, stack + PAGE},
		{program, program + PAGE},
		{heap - PAGE, heap},
		{(uint64_t)left.data, (uint64_t)left.data + PAGE}, /* data, which is no code */
		{code + 1, code + PAGE},
		{code, code + PAGE + 1},
		{code + PAGE, code},
		{code, code},
		{code, code + 3 * PAGE},
		{code - PAGE, code + PAGE},
		{1, UINT64_MAX},
		{PAGE, 2 * PAGE},
		{code, code + (UINT64_C(2) << 30)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		left.list.mapping[0] = rows[i];
		assert_true(find(&left));
		assert_int_equal(left.pieces.code_count, 0);
	}
	left.list.mapping[0] = (struct recorder_mapping){code, code + PAGE};
	/* Twice, or overlapping. */
	left.list.mapping[1] = (struct recorder_mapping){code, code + 2 * PAGE};
	assert_true(find(&left) && left.pieces.code_count == 1);
	/* Doors of a size that there is not, which would be anywhere. */
	left.list.doors = (struct recorder_mapping){PAGE, UINT64_MAX};
	assert_true(find(&left) && left.pieces.code_count == 1);
	left.list.doors = (struct recorder_mapping){(uint64_t)left.image, (uint64_t)left.image + INJECT_DOOR_BYTES};
	assert_true(find(&left) && left.pieces.code_count == 2 && left.pieces.item[0].is_door);
	/* Data that is code. */
	left.list.data = left.list.mapping[0];
	assert_true(find(&left) && left.pieces.count == 3);
	left_end(&left);
}

/* ---- unmapping ---- */

static struct {
	int count;
	uint64_t low[CALLS_MAX], bytes[CALLS_MAX];
} unmapped;

static int64_t note_call(struct remote *remote, long number, const uint64_t argument[6])
{
	(void)remote;
	assert_int_equal(number, SYS_munmap);
	assert_true(unmapped.count < CALLS_MAX);
	unmapped.low[unmapped.count] = argument[0];
	unmapped.bytes[unmapped.count++] = argument[1];
	return 0;
}

static void unmap(struct left *left)
{
	struct remote remote = {.pid = getpid(), .call = note_call, .is_running = true, .memory = left->memory};
	unmapped.count = 0;
	pieces_unmap(&left->pieces, &remote);
}

static void check_unmapped(int index, const void *low, uint64_t bytes)
{
	assert_true(index < unmapped.count);
	assert_int_equal(unmapped.low[index], (uint64_t)low);
	assert_int_equal(unmapped.bytes[index], bytes);
}

/* Pools first, then the code; doors are the program's. The list says no more of what is gone. */
static void test_unmapping(void **state)
{
	struct left left;
	(void)state;
	left_begin(&left);
	left.list.doors = (struct recorder_mapping){(uint64_t)left.image, (uint64_t)left.image + INJECT_DOOR_BYTES};
	assert_true(find(&left));
	unmap(&left);
	assert_int_equal(unmapped.count, 4);
	check_unmapped(0, left.pool, 2 * PAGE);
	check_unmapped(1, left.code, 2 * PAGE);
	check_unmapped(2, left.data, 2 * PAGE);
	check_unmapped(3, left.region, REGION_BYTES);
	assert_null(left.newest);
	assert_int_equal(left.list.mapping[0].low, 0);
	left_end(&left);
}

/* Pools that lead to the program's memory, in a circle, or nowhere. */
static void test_hostile_pools(void **state)
{
	struct left left;
	struct recorder_pool *pool;
	struct recorder_pool local = {.bytes = PAGE};
	(void)state;
	left_begin(&left);
	pool = left.newest;
	assert_true(find(&left));
	struct recorder_pool *const others[] = {&local, (struct recorder_pool *)of_the_program,
						(struct recorder_pool *)left.image, (struct recorder_pool *)8,
						(struct recorder_pool *)UINT64_MAX};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		left.list.mapping[0] = (struct recorder_mapping){(uint64_t)left.code, (uint64_t)left.code + 2 * PAGE};
		left.newest = others[i];
		unmap(&left);
		assert_int_equal(unmapped.count, 3);
		check_unmapped(0, left.code, 2 * PAGE);
	}
	/* A size that no pool has. */
	const uint64_t sizes[] = {UINT64_C(1) << 31, UINT64_C(1) << 40, UINT64_MAX, 0};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		left.newest = pool;
		pool->bytes = sizes[i];
		unmap(&left);
		assert_int_equal(unmapped.count, 3);
	}
	/* The guard below it goes with it, if it is one. */
	assert_int_equal(mprotect(left.pool - PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	left.newest = pool;
	*pool = (struct recorder_pool){.bytes = PAGE, .guard_bytes = 3};
	unmap(&left);
	assert_int_equal(unmapped.count, 4);
	check_unmapped(0, left.pool, PAGE);
	/* A circle ends. */
	left.newest = pool;
	pool->next = pool;
	unmap(&left);
	assert_true(unmapped.count > 4);
	left_end(&left);
}

/* ---- patches ---- */

static void patch(struct left *left, uint64_t offset, uint64_t to)
{
	unsigned char jump[CPU_JUMP_BYTES];
	patch_put_jump(jump, (uint64_t)left->image + offset, to);
	assert_true(remote_write(left->memory, (uint64_t)left->image + offset, jump, sizeof(jump)));
}

static int find_patches(struct left *left, struct patches *patches, struct diag *diag)
{
	assert_true(find(left));
	return patches_find(patches, getpid(), left->memory, &left->pieces, left->maps, left->map_count, diag);
}

/* Write the files' bytes, and compare all of the image with its file. */
static void check_undone(struct left *left, const struct patches *patches)
{
	for (uint32_t i = 0; i < patches->count; i++)
		assert_true(remote_write(left->memory, patches->items[i].address, patches->items[i].file,
					 patches->items[i].size));
	for (size_t i = 0; i < IMAGE_BYTES; i++)
		assert_int_equal(left->image[i], 0x90);
}

static void test_patches(void **state)
{
	static const uint64_t offsets[] = {0, 100, 200, PAGE - 2, 2 * PAGE - 5, 3 * PAGE, IMAGE_BYTES - CPU_JUMP_BYTES};
	enum { COUNT = sizeof(offsets) / sizeof(*offsets) };
	struct left left;
	struct patches patches;
	struct diag diag = {""};
	(void)state;
	left_begin(&left);
	for (unsigned i = 0; i < COUNT; i++)
		patch(&left, offsets[i], (uint64_t)left.code + 16 * i);
	assert_int_equal(find_patches(&left, &patches, &diag), 0);
	/* One that crosses a page may be found in two parts. */
	assert_true(patches.count >= COUNT && patches.count <= COUNT + 1);
	for (uint32_t i = 0; i < patches.count; i++)
		assert_false(patches.items[i].is_door);
	check_undone(&left, &patches);
	free(patches.items);
	left_end(&left);
}

/* What others have patched, and jumps that lead elsewhere, stay. */
static void test_patches_of_others(void **state)
{
	struct left left;
	struct patches patches;
	struct diag diag = {""};
	const unsigned char trap = 0xcc;
	(void)state;
	left_begin(&left);
	assert_true(remote_write(left.memory, (uint64_t)left.image + 50, &trap, 1));
	patch(&left, 300, (uint64_t)left.data);
	patch(&left, 400, (uint64_t)left.code + 2 * PAGE);
	assert_int_equal(find_patches(&left, &patches, &diag), 0);
	assert_int_equal(patches.count, 0);
	patch(&left, 500, (uint64_t)left.code);
	assert_int_equal(find_patches(&left, &patches, &diag), 0);
	assert_int_equal(patches.count, 1);
	assert_true(patches.items[0].address <= (uint64_t)left.image + 500);
	assert_true(patches.items[0].address + patches.items[0].size >=
		    (uint64_t)left.image + 500 + CPU_JUMP_BYTES - 1);
	free(patches.items);
	left_end(&left);
}

/* A door is the whole of it, whatever its bytes are. */
static void test_doors(void **state)
{
	struct left left;
	struct patches patches;
	struct diag diag = {""};
	unsigned char door[INJECT_DOOR_BYTES];
	(void)state;
	left_begin(&left);
	uint64_t at = (uint64_t)left.image + IMAGE_BYTES - sizeof(door);
	memset(door, 0x90, sizeof(door));
	patch_put_far_jump(door, (uint64_t)left.code);
	assert_true(remote_write(left.memory, at, door, sizeof(door)));
	left.list.doors = (struct recorder_mapping){at, at + sizeof(door)};
	patch(&left, 100, at);
	assert_int_equal(find_patches(&left, &patches, &diag), 0);
	assert_int_equal(patches.count, 2);
	assert_false(patches.items[0].is_door);
	assert_true(patches.items[1].is_door);
	check_undone(&left, &patches);
	free(patches.items);
	left_end(&left);
}

/* Without the file the bytes are unknown; a patch of another image is no matter then. */
static void test_lost_file(void **state)
{
	struct left left;
	struct patches patches;
	struct diag diag = {""};
	(void)state;
	left_begin(&left);
	unlink(image_path);
	make_file(image_path, IMAGE_BYTES, 0x91);
	assert_int_equal(find_patches(&left, &patches, &diag), 0);
	assert_int_equal(patches.count, 0);
	patch(&left, 100, (uint64_t)left.code);
	int error = find_patches(&left, &patches, &diag);
	/* The kernel's link still leads to it for whoever may follow that. */
	if (error == 0) {
		assert_int_equal(patches.count, 1);
		check_undone(&left, &patches);
	} else {
		assert_int_equal(error, -ENOENT);
		assert_non_null(strstr(diag.text, "is gone"));
	}
	free(patches.items);
	left_end(&left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),      cmocka_unit_test(test_other_regions),
		cmocka_unit_test(test_other_lists), cmocka_unit_test(test_hostile_pieces),
		cmocka_unit_test(test_unmapping),   cmocka_unit_test(test_hostile_pools),
		cmocka_unit_test(test_patches),     cmocka_unit_test(test_patches_of_others),
		cmocka_unit_test(test_doors),       cmocka_unit_test(test_lost_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
