/* SPDX-License-Identifier: MIT */
#include "inject/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "arch/registers.h"
#include "inject/images.h"
#include "inject/patches.h"
#include "inject/recorder_blob.h"
#include "os/proc.h"
#include "recorder/recorder.h"

enum { PAGE = 4096, MAIN_ISLAND_BYTES = 128 * 1024 };

/* Return whether the target's descriptor is the region: a path may lead elsewhere in another mount namespace. */
static bool is_region(const struct inject *inject, int64_t fd)
{
	struct stat there, here;
	return fstat(inject->region->fd, &here) == 0 &&
	       stat(proc_path(inject->pid, "fd/%d", (int)fd).text, &there) == 0 && there.st_dev == here.st_dev &&
	       there.st_ino == here.st_ino;
}

/* Return the size of struct recorder; the part for sessions that sample lies at its end. */
static uint64_t recorder_bytes(const struct inject *inject)
{
	return inject->is_sampling ? RECORDER_DATA_BYTES : RECORDER_UNSAMPLED_BYTES;
}

bool map_failed(int64_t result)
{
	return result < 0 && result > -4096;
}

static int64_t map_at(struct remote *remote, uint64_t hint, const struct map_wish *memory)
{
	int flags = memory->flags | (hint ? MAP_FIXED_NOREPLACE : 0);
	return remote_call(remote, SYS_mmap, hint, memory->bytes, (uint64_t)memory->protection, (uint64_t)flags,
			   (uint64_t)memory->fd, 0);
}

static void unmap(struct remote *remote, uint64_t at, uint64_t bytes)
{
	if (at)
		remote_call(remote, SYS_munmap, at, bytes, 0, 0, 0, 0);
}

/* Map at an address of place_find(). Other threads may map something at the same time, so each try reads the process's
   maps anew. */
static int64_t map_placed(const struct inject *inject, struct remote *remote, const struct place_wish *place,
			  const struct map_wish *memory)
{
	enum { TRIES = 16 };
	int64_t at = -EEXIST;
	for (int try = 0; try < TRIES && at == -EEXIST; try++) {
		struct proc_map *maps = NULL;
		int count = proc_read_maps(inject->pid, &maps);
		struct place_heap heap = place_heap_of(inject->pid, maps, count);
		uint64_t gap = count > 0 ? place_find(maps, count, &heap, place, memory->bytes) : 0;
		at = gap ? map_at(remote, gap, memory) : -ENOMEM;
		free(maps);
	}
	return at;
}

/* Map elsewhere what the kernel has mapped where the program counts on room. */
static int64_t map_moved(const struct inject *inject, struct remote *remote, int64_t at, const struct map_wish *memory)
{
	const struct place_wish anywhere = place_anywhere();
	if (map_failed(at) || !place_is_kept(&inject->heap, (uint64_t)at, memory->bytes))
		return at;
	unmap(remote, (uint64_t)at, memory->bytes);
	return map_placed(inject, remote, &anywhere, memory);
}

int64_t map_anywhere(const struct inject *inject, struct remote *remote, const struct map_wish *wish)
{
	return map_moved(inject, remote, map_at(remote, 0, wish), wish);
}

enum { MAP_WRITTEN = MAP_OURS | MAP_GROWSDOWN | MAP_FIXED };

/* Return the wish for the addresses of memory that the recorder writes: the guard and the memory. */
static struct map_wish room_for(uint64_t bytes)
{
	return (struct map_wish){RECORDER_GUARD_BYTES + bytes, PROT_NONE, MAP_OURS, -1};
}

/* Map memory over the room that is mapped for it. Return its address or a negative errno, also that of the room. */
static int64_t map_over(struct remote *remote, int64_t room, uint64_t bytes)
{
	return map_failed(room) ? room
				: remote_call(remote, SYS_mmap, (uint64_t)room + RECORDER_GUARD_BYTES, bytes,
					      PROT_READ | PROT_WRITE, MAP_WRITTEN, (uint64_t)-1, 0);
}

int64_t map_written(const struct inject *inject, struct remote *remote, uint64_t bytes)
{
	const struct map_wish wish = room_for(bytes);
	int64_t room = map_anywhere(inject, remote, &wish), at = map_over(remote, room, bytes);
	if (map_failed(at) && !map_failed(room))
		unmap(remote, (uint64_t)room, wish.bytes);
	return at;
}

enum { CALL_OPEN, CALL_REGION, CALL_ROOM, CALL_DATA, CALL_WIPE, CALL_COUNT = 9 };

/* Map everything but the islands in one batch. The target itself opens the region's file by its path, which lies at
   `place`. */
static int map_at_once(const struct inject *inject, struct remote *remote, uint64_t place,
		       int64_t results[REMOTE_BATCH_MAX])
{
	const uint64_t bytes = inject->region->bytes, fork_wiped_at = recorder_bytes(inject),
		       data_bytes = fork_wiped_at + RECORDER_WIPED_BYTES;
	const uint64_t both = PROT_READ | PROT_WRITE, guard_bytes = RECORDER_GUARD_BYTES;
	const struct map_wish room = room_for(data_bytes);
	const struct inject_island *island = &inject->island[0];
	const struct remote_step steps[CALL_COUNT] = {
		[CALL_OPEN] = {SYS_openat, true, {{(uint64_t)AT_FDCWD, 0}, {place, 0}, {O_RDWR | O_CLOEXEC, 0}}},
		[CALL_REGION] = {SYS_mmap, true, {{0, 0}, {bytes, 0}, {both, 0}, {MAP_SHARED, 0}, {0, CALL_OPEN + 1}}},
		[CALL_ROOM] = {SYS_mmap,
			       true,
			       {{0, 0}, {room.bytes, 0}, {PROT_NONE, 0}, {MAP_OURS, 0}, {(uint64_t)-1, 0}}},
		[CALL_DATA] = {SYS_mmap,
			       true,
			       {{guard_bytes, CALL_ROOM + 1},
				{data_bytes, 0},
				{both, 0},
				{MAP_WRITTEN, 0},
				{(uint64_t)-1, 0}}},
		[CALL_WIPE] = {SYS_madvise,
			       true,
			       {{fork_wiped_at, CALL_DATA + 1}, {RECORDER_WIPED_BYTES, 0}, {MADV_WIPEONFORK, 0}}},
		{SYS_madvise, false, {{0, CALL_DATA + 1}, {data_bytes, 0}, {MADV_DONTDUMP, 0}}},
		{SYS_madvise, false, {{0, CALL_REGION + 1}, {bytes, 0}, {MADV_DONTDUMP, 0}}},
		{SYS_madvise, false, {{island[0].low, 0}, {island[0].high - island[0].low, 0}, {MADV_DONTDUMP, 0}}},
		{SYS_madvise, false, {{island[1].low, 0}, {island[1].high - island[1].low, 0}, {MADV_DONTDUMP, 0}}},
	};
	return remote_batch(remote, island->low, steps, CALL_COUNT, results);
}

/* Map the region by a descriptor that is passed to the target. It cannot open the region itself under another root
   directory or as another user. results: as map_at_once() left them. */
static int map_passed_region(const struct inject *inject, struct remote *remote, uint64_t place, int64_t *results)
{
	if (results[CALL_OPEN] >= 0) {
		remote_call(remote, SYS_munmap, (uint64_t)results[CALL_REGION], inject->region->bytes, 0, 0, 0, 0);
		remote_call(remote, SYS_close, (uint64_t)results[CALL_OPEN], 0, 0, 0, 0, 0);
	}
	results[CALL_REGION] = results[CALL_OPEN] = remote_pass(remote, place, inject->region->fd);
	if (results[CALL_OPEN] < 0)
		return (int)results[CALL_OPEN];
	results[CALL_REGION] = remote_call(remote, SYS_mmap, 0, inject->region->bytes, PROT_READ | PROT_WRITE,
					   MAP_SHARED, (uint64_t)results[CALL_OPEN], 0);
	if (!map_failed(results[CALL_REGION]))
		remote_call(remote, SYS_madvise, (uint64_t)results[CALL_REGION], inject->region->bytes, MADV_DONTDUMP,
			    0, 0, 0);
	return 0;
}

/* Move the region and the recorder's memory to where they stay. The region's file is still open. */
static void move_memory(const struct inject *inject, struct remote *remote, int64_t *results)
{
	const int both = PROT_READ | PROT_WRITE;
	const struct map_wish region = {inject->region->bytes, both, MAP_SHARED, (int)results[CALL_OPEN]};
	const uint64_t data_bytes = recorder_bytes(inject) + RECORDER_WIPED_BYTES;
	const struct map_wish room = room_for(data_bytes);
	int64_t region_at = map_moved(inject, remote, results[CALL_REGION], &region),
		room_at = map_moved(inject, remote, results[CALL_ROOM], &room);
	if (region_at != results[CALL_REGION] && !map_failed(region_at))
		remote_call(remote, SYS_madvise, (uint64_t)region_at, region.bytes, MADV_DONTDUMP, 0, 0, 0);
	bool is_there = room_at == results[CALL_ROOM] && !map_failed(room_at);
	int64_t data_at = is_there ? results[CALL_DATA] : map_over(remote, room_at, data_bytes);
	if (data_at != results[CALL_DATA] && !map_failed(data_at)) {
		remote_call(remote, SYS_madvise, (uint64_t)data_at, data_bytes, MADV_DONTDUMP, 0, 0, 0);
		results[CALL_WIPE] = remote_call(remote, SYS_madvise, (uint64_t)data_at + recorder_bytes(inject),
						 RECORDER_WIPED_BYTES, MADV_WIPEONFORK, 0, 0, 0);
	}
	if (map_failed(data_at) && !map_failed(room_at))
		unmap(remote, (uint64_t)room_at, room.bytes);
	results[CALL_REGION] = region_at;
	results[CALL_DATA] = data_at;
}

/* Map the region and the recorder's memory in the target, which keeps no descriptor. */
static int map_memory(struct inject *inject, struct remote *remote, const char *path, int64_t results[REMOTE_BATCH_MAX])
{
	uint64_t place = (registers_sp(&remote->registers) - 2048) & ~15ull;
	char saved[REMOTE_PLACE_BYTES];
	if (strlen(path) >= sizeof(saved) || !remote_read(remote->memory, place, saved, sizeof(saved)) ||
	    !remote_write(remote->memory, place, path, strlen(path) + 1))
		return -EFAULT;
	int error = map_at_once(inject, remote, place, results);
	if (!error && (results[CALL_OPEN] < 0 || !is_region(inject, results[CALL_OPEN])))
		error = map_passed_region(inject, remote, place, results);
	remote_write(remote->memory, place, saved, sizeof(saved));
	if (!error)
		move_memory(inject, remote, results);
	if (!error)
		remote_call(remote, SYS_close, (uint64_t)results[CALL_OPEN], 0, 0, 0, 0, 0);
	return error;
}

/* Add an island. place: NULL: the kernel chooses. */
static int island_add(struct inject *inject, struct remote *remote, const struct place_wish *place, uint64_t bytes)
{
	const struct map_wish memory = {bytes, PROT_READ | PROT_EXEC, MAP_OURS, -1};
	int64_t at = place ? map_placed(inject, remote, place, &memory) : map_anywhere(inject, remote, &memory);
	if (map_failed(at))
		return (int)at;
	inject->island[inject->island_count++] =
		(struct inject_island){(uint64_t)at, (uint64_t)at, (uint64_t)at + bytes};
	return 0;
}

static bool is_far(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) > PLACE_REACH / 2;
}

/* Add an island near an executable. */
static int island_add_beside(struct inject *inject, struct remote *remote, const struct region_image *image)
{
	const struct place_wish beside = place_near(image->base, image->end);
	int error = island_add(inject, remote, &beside, MAIN_ISLAND_BYTES);
	if (error)
		inject_refuse(inject, "functions", "the executable", "no free memory within reach");
	return error;
}

/* Map the islands: one with the recorder's code beside the loader, or beside a static executable. An executable far
   from there gets one more. An executable with doors needs none near it. */
static int islands_add(struct inject *inject, struct remote *remote, uint64_t near, const struct proc_map *executable,
		       uint64_t bytes)
{
	struct region_image loader = {.base = near, .end = near},
			    image = {.base = executable->low, .end = executable->low};
	image_read_loaded(inject->memory, near, &loader, NULL);
	image_read_loaded(inject->memory, executable->low, &image, NULL);
	bool needs_own = is_far(image.base, near), is_asked = needs_own || image.end <= LOW_CODE_END;
	const char *why;
	uint32_t count =
		is_asked
			? patches_count(inject, inject->find_hooks(inject->cookie, inject->pid, executable, true, &why))
			: 0;
	doors_open(inject, &image, count);
	bool has_doors = inject->doors.high != 0;
	const struct place_wish place = place_near(loader.base, loader.end);
	int error = island_add(inject, remote, has_doors && !needs_own ? NULL : &place, bytes);
	if (!error && needs_own && count && !has_doors)
		island_add_beside(inject, remote, &image);
	return error;
}

void map_near_program(struct inject *inject, struct remote *remote, int file, const struct hook_image *hooks)
{
	Elf64_Ehdr header;
	struct region_image image;
	struct inject_doors doors;
	uint32_t count = patches_count(inject, hooks);
	if (!count || !remote_read(file, 0, &header, sizeof(header)) || header.e_type != ET_EXEC ||
	    !image_read_loaded(file, 0, &image, NULL))
		return;
	/* As if it had begun at 0. */
	image.base -= image.bias;
	image.end -= image.bias;
	if (!is_far(image.base, inject->text) || doors_fit(file, &image, 0, count, &doors) ||
	    island_add_beside(inject, remote, &image) != 0)
		return;
	const struct inject_island *island = &inject->island[inject->island_count - 1];
	if (island->high <= image.base || island->low >= image.end)
		return;
	unmap(remote, island->low, island->high - island->low);
	inject->island_count--;
	inject_refuse(inject, "functions", "the executable", "no free memory within reach");
}

int map_all(struct inject *inject, struct remote *remote, const char *region_path, uint64_t near,
	    const struct proc_map *executable, const struct inject_exclusive *exclusive, struct diag *diag)
{
	size_t code_size = 0;
	const unsigned char *code = recorder_code(&code_size);
	uint64_t code_bytes = (code_size + 63) & ~63ull;
	uint64_t bytes = (code_bytes + RECORDER_ISLAND_BYTES + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	int error = islands_add(inject, remote, near, executable, bytes);
	if (error)
		return diag_fail(diag, -error, "cannot map the recorder into process %d: %s", (int)inject->pid,
				 strerror(-error));
	inject->text = inject->island[0].low;
	inject->island[0].next = inject->text + code_bytes;
	remote_own_gate(remote, inject->island[0].high - REMOTE_GATE_BYTES);
	int64_t results[REMOTE_BATCH_MAX] = {0};
	error = exclusive ? exclusive->begin(exclusive->cookie, diag) : 0;
	if (error)
		return error;
	error = map_memory(inject, remote, region_path, results);
	if (exclusive)
		exclusive->end(exclusive->cookie);
	inject->region_address = map_failed(results[CALL_REGION]) ? 0 : (uint64_t)results[CALL_REGION];
	inject->recorder = map_failed(results[CALL_DATA]) ? 0 : (uint64_t)results[CALL_DATA];
	inject->fork_wiped = inject->recorder + recorder_bytes(inject);
	if (!error && map_failed(results[CALL_REGION]))
		error = (int)results[CALL_REGION];
	if (error)
		return diag_fail(diag, -error, "cannot map the region into process %d: %s", (int)inject->pid,
				 strerror(-error));
	if (map_failed(results[CALL_DATA])) {
		error = (int)-results[CALL_DATA];
		return diag_fail(diag, error, "cannot map the recorder's memory into process %d: %s", (int)inject->pid,
				 strerror(error));
	}
	if (results[CALL_WIPE] != 0)
		return diag_fail(diag, ENOTSUP, "this kernel has no MADV_WIPEONFORK");
	if (!remote_write(remote->memory, inject->text, code, code_size))
		return diag_fail(diag, EPERM, "cannot write the recorder into process %d", (int)inject->pid);
	return 0;
}
