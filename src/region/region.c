/* SPDX-License-Identifier: MIT */
#include "region/region.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "region/atomic.h"
#include "region/guard.h"
#include "region/message.h"

enum {
	PAGE = 4096,
	SLOT_DEFAULT = 8192,
	PC_DEFAULT = 1 << 20,
	FILE_DEFAULT = 8192,
	IMAGE_DEFAULT = 16384,
	SLOT_LIMIT = 1 << 16,
	PC_LIMIT = 1 << 24,
	CODE_DEFAULT = 1 << 14,
	CODE_LIMIT = 1 << 20,
	FILE_LIMIT = 1 << 20,
	IMAGE_LIMIT = 1 << 16,
	BUFFER_LIMIT = 1 << 20,
	BUFFER_SIZE_LIMIT = 1 << 20,
	/* Numbers of allocated rows at the beginning. An idle process needs few; others get more when they need
	   them. */
	PROCESS_FIRST = 64,
	ENTRY_FIRST = 32,
	FILE_FIRST = 8,
	IMAGE_FIRST = 8,
	HEAP_FIRST = 256,
	NAME_FIRST = 64,
	CODE_FIRST = 32,
	CODE_FIRST_DROPPING = 2048,
	CODE_AHEAD = 2048,
	SLOT_FIRST = 32,
	SLOT_FIRST_DROPPING = 64,
	PC_FIRST_READY = 1024,
	PC_FIRST_DROPPING = 16 * 1024,
	PC_AHEAD = 1024,
	/* Beyond what is asked for, so that a few are left to go round when each of as many threads keeps one. */
	BUFFER_SPARE = 8
};

/* ---- where things lie: a function of the limits, the same when a region is made and when it is adopted ---- */

#define PC_LAST (UINT32_MAX - 1)

/** One array of the region. */
struct region_part {
	size_t offset_field, max_field, size;
};

#define PART(name, type) \
	{ \
		offsetof(struct region_limits, name##_offset), offsetof(struct region_limits, name##_max), \
			sizeof(struct type) \
	}
/* In the order of the file. */
static const struct region_part parts[] = {
	PART(process, region_process),
	PART(entry, region_entry),
	PART(file, region_file),
	PART(image, region_image),
	PART(heap, region_heap),
	PART(name, region_heap_name),
	PART(slot, region_slot),
	PART(pc, region_pc),
	PART(code, region_code),
	{offsetof(struct region_limits, head_offset), offsetof(struct region_limits, buffer_max),
	 sizeof(struct region_buffer)},
};
#undef PART

static uint32_t *field(struct region_limits *limits, size_t offset)
{
	return (uint32_t *)((uint8_t *)limits + offset);
}

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* Compute the offsets and region_bytes from the limits. Return false if these exceed the maxima of layout.h. */
static bool layout_compute(struct region_limits *limits)
{
	uint64_t at = REGION_HEADER_BYTES;
	if (limits->process_max == 0 || limits->process_max > REGION_PROCESS_MAX || limits->entry_max == 0 ||
	    limits->entry_max > REGION_ENTRY_MAX || limits->heap_max == 0 || limits->heap_max > REGION_HEAP_MAX ||
	    limits->name_max == 0 || limits->name_max > REGION_NAME_MAX || limits->file_max == 0 ||
	    limits->file_max > FILE_LIMIT || limits->image_max == 0 || limits->image_max > IMAGE_LIMIT ||
	    limits->slot_max == 0 || limits->slot_max > SLOT_LIMIT || limits->pc_max <= PC_FIRST ||
	    limits->pc_max > PC_LIMIT || limits->code_max == 0 || limits->code_max > CODE_LIMIT ||
	    limits->buffer_max == 0 || limits->buffer_max > BUFFER_LIMIT || limits->own_keepers >= limits->buffer_max ||
	    limits->signal_keepers >= limits->buffer_max || limits->buffer_size == 0 ||
	    limits->buffer_size % PAGE != 0 || limits->buffer_size > BUFFER_SIZE_LIMIT)
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		*field(limits, parts[i].offset_field) = (uint32_t)at;
		at = page_up(at + (uint64_t)*field(limits, parts[i].max_field) * parts[i].size);
	}
	limits->buffer_offset = at;
	limits->region_bytes = at + (uint64_t)limits->buffer_max * limits->buffer_size;
	return at <= UINT32_MAX;
}

/* ---- pages ---- */

/* Allocate the pages of elements [from, to) of an array. */
static int allocate(const struct region *region, uint64_t offset, uint64_t size, uint32_t from, uint32_t to)
{
	assert(from <= to);
	uint64_t low = (offset + from * size) & ~(uint64_t)(PAGE - 1), high = page_up(offset + to * size);
	/* A page that the last call allocated already costs nothing. */
	return high > low && fallocate(region->fd, 0, (off_t)low, (off_t)(high - low)) != 0 ? -errno : 0;
}

static uint32_t at_most(uint64_t value, uint32_t max)
{
	return value < max ? (uint32_t)value : max;
}

void region_note_progress(const struct region *region)
{
	__atomic_fetch_add(&region->header->progress, 1, __ATOMIC_RELEASE);
}

void region_answer(struct region_message *message, uint32_t tid)
{
	if (message_turn(message, tid, MESSAGE_POSTED, MESSAGE_ANSWERED))
		syscall(SYS_futex, &message->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void region_note_slots(const struct region *region)
{
	__atomic_fetch_add(&region->header->slot_room, 1, __ATOMIC_RELEASE);
	region_note_progress(region);
}

/* Allocate elements up to `want` and raise the shared count. */
static int raise(struct region *region, uint32_t *ready, uint32_t *shared, uint64_t offset, uint64_t size,
		 uint32_t want)
{
	int error = want > *ready ? allocate(region, offset, size, *ready, want) : 0;
	region->is_short |= error != 0;
	if (error || want <= *ready)
		return error;
	*ready = want;
	/* Pairs with the recorder's acquire: what lies below the count is allocated. */
	STORE_RELEASE(shared, want);
	region_note_progress(region);
	return 0;
}

static int raise_pc(struct region *region, uint64_t want)
{
	const struct region_limits *limits = &region->limits;
	const uint64_t most = (uint64_t)region->pc_low - PC_FIRST + limits->pc_max;
	uint32_t ready = at_most(want < most ? want : most, PC_LAST);
	/* The first time round the rows have no memory yet. */
	int error = region->pc_room < limits->pc_max && ready > region->pc_room
			    ? allocate(region, limits->pc_offset, sizeof(struct region_pc), region->pc_room,
				       at_most(ready, limits->pc_max))
			    : 0;
	region->is_short |= error != 0;
	if (error || ready <= region->pc_ready)
		return error;
	region->pc_room = at_most(ready, limits->pc_max);
	region->pc_ready = ready;
	/* Pairs with the recorder's acquire: the rows of these ids are allocated and empty. */
	STORE_RELEASE(&region->header->pc_ready, ready);
	region_note_progress(region);
	return 0;
}

/* The parts of which both sides only know a number of rows that are ready. */
#define RAISE(name, type) \
	static int raise_##name(struct region *region, uint64_t want) \
	{ \
		const struct region_limits *limits = &region->limits; \
		return raise(region, &region->name##_ready, &region->header->name##_ready, limits->name##_offset, \
			     sizeof(struct type), at_most(want, limits->name##_max)); \
	}
RAISE(process, region_process)
RAISE(heap, region_heap)
RAISE(name, region_heap_name)
RAISE(slot, region_slot)
RAISE(code, region_code)
#undef RAISE

static int raise_buffers(struct region *region, uint64_t want)
{
	const struct region_limits *limits = &region->limits;
	uint32_t count = at_most(want, limits->buffer_max);
	if (count <= region->buffer_ready)
		return 0;
	int error = allocate(region, limits->head_offset, sizeof(struct region_buffer), region->buffer_ready, count);
	return error ? error
		     : raise(region, &region->buffer_ready, &region->header->buffer_ready, limits->buffer_offset,
			     limits->buffer_size, count);
}

/* Allocate `want` rows, which the logger fills before it raises their count. */
static int make_room(const struct region *region, uint32_t *room, uint64_t offset, uint64_t size, uint64_t want,
		     uint32_t max)
{
	assert(*room <= max);
	uint32_t count = at_most(want, max);
	int error = count > *room ? allocate(region, offset, size, *room, count) : 0;
	*room = error || count < *room ? *room : count;
	return error;
}

/* Allocate everything that a region has from its beginning. */
static int allocate_first(struct region *region, const struct region_config *config)
{
	const struct region_limits *limits = &region->limits;
	bool is_waiting = (config->options & OPTION_WAIT) && !config->never_waits;
	int error = raise_process(region, PROCESS_FIRST);
	error = error ? error
		      : make_room(region, &region->entry_room, limits->entry_offset, sizeof(struct region_entry),
				  ENTRY_FIRST, limits->entry_max);
	error = error ? error
		      : make_room(region, &region->file_room, limits->file_offset, sizeof(struct region_file),
				  FILE_FIRST, limits->file_max);
	error = error ? error
		      : make_room(region, &region->image_room, limits->image_offset, sizeof(struct region_image),
				  IMAGE_FIRST, limits->image_max);
	error = error ? error : raise_heap(region, HEAP_FIRST);
	error = error ? error : raise_name(region, NAME_FIRST);
	error = error ? error : raise_code(region, is_waiting ? CODE_FIRST : CODE_FIRST_DROPPING);
	error = error ? error : raise_slot(region, is_waiting ? SLOT_FIRST : SLOT_FIRST_DROPPING);
	error = error ? error : raise_pc(region, is_waiting ? PC_FIRST_READY : PC_FIRST_DROPPING);
	return error ? error : raise_buffers(region, config->buffer_min);
}

/* ---- mappings ---- */

/* Held by who maps a region, and by who forks: a child never gets a region that is not yet marked. */
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;

static void fork_lock_take(void)
{
	pthread_mutex_lock(&fork_lock);
}

static void fork_lock_give(void)
{
	pthread_mutex_unlock(&fork_lock);
}

static void fork_lock_begin(void)
{
	pthread_atfork(fork_lock_take, fork_lock_give, fork_lock_give);
}

/* Map the file for this process alone. Who has the region mapped counts as a target: a child that the logger asks, and
   may lose, has not. */
static void *map_alone(int fd, size_t bytes, int flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, fork_lock_begin);
	fork_lock_take();
	void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (mapping != MAP_FAILED)
		madvise(mapping, bytes, MADV_DONTFORK);
	fork_lock_give();
	return mapping;
}

static int map_file(struct region *region, int flags, const char *path, struct diag *diag)
{
	void *mapping = map_alone(region->fd, region->bytes, flags);
	if (mapping == MAP_FAILED)
		return diag_errno(diag, "cannot map %s", path);
	region->header = mapping;
	region->guard = guard_add(mapping, region->bytes);
	return region->guard ? 0 : diag_fail(diag, EMFILE, "cannot map %s: there are too many", path);
}

/* ---- making ---- */

static void boot_id_read(uint8_t id[16])
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), digits = 0;
	if (fd < 0)
		return;
	ssize_t size = read(fd, text, sizeof(text) - 1);
	close(fd);
	for (ssize_t i = 0; i < size && digits < 32; i++) {
		const char *all = "0123456789abcdef", *digit = text[i] ? strchr(all, text[i]) : NULL;
		if (digit)
			id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | (digit - all)), digits++;
	}
}

static int config_check(const struct region_config *config, struct diag *diag)
{
	if (config->buffer_size == 0 || config->buffer_size % PAGE != 0 || config->buffer_size > BUFFER_SIZE_LIMIT)
		return diag_fail(diag, EINVAL, "a buffer of %u bytes: it must be a multiple of 4096, at most 1 MiB",
				 config->buffer_size);
	if (config->buffer_min == 0 || config->buffer_min > config->buffer_max || config->buffer_max > BUFFER_LIMIT)
		return diag_fail(diag, EINVAL, "from %u to %u buffers: there must be one at least, and no more than %d",
				 config->buffer_min, config->buffer_max, BUFFER_LIMIT);
	return 0;
}

static struct region_limits limits_of(const struct region_config *config)
{
	/* Five of eight buffers may be kept by threads, one by their signal handlers' calls; the others go round. */
	uint32_t buffers = config->buffer_max + BUFFER_SPARE;
	return (struct region_limits){
		.clock = config->clock,
		.own_keepers = buffers / 8 * 5,
		.signal_keepers = buffers / 8,
		.process_max = REGION_PROCESS_MAX,
		.entry_max = REGION_ENTRY_MAX,
		.heap_max = REGION_HEAP_MAX,
		.name_max = REGION_NAME_MAX,
		.file_max = config->file_max ? config->file_max : FILE_DEFAULT,
		.image_max = config->image_max ? config->image_max : IMAGE_DEFAULT,
		.slot_max = config->slot_max ? config->slot_max : SLOT_DEFAULT,
		.pc_max = config->pc_max ? config->pc_max : PC_DEFAULT,
		.code_max = config->code_max ? config->code_max : CODE_DEFAULT,
		.buffer_max = buffers,
		.buffer_size = config->buffer_size,
	};
}

/* Return the header, except for the magic number, which says that the rest is complete. */
static struct region_header header_of(const struct region_config *config, const struct region_limits *limits)
{
	struct region_header header = {.version = REGION_VERSION,
				       .header_bytes = REGION_HEADER_BYTES,
				       .options = config->options,
				       .limits = *limits,
				       .name_count = 1,
				       .pc_count = PC_FIRST,
				       .pc_ready = PC_FIRST,
				       .pc_low = PC_FIRST};
	boot_id_read(header.boot_id);
	if (getrandom(&header.region_id, sizeof(header.region_id), 0) != sizeof(header.region_id))
		header.region_id = (uint64_t)getpid() << 32 ^ config->start_ticks;
	return header;
}

static int create(struct region *region, const char *path, const struct region_config *config, struct diag *diag)
{
	region->bytes = region->limits.region_bytes;
	if (ftruncate(region->fd, (off_t)region->bytes) != 0)
		return diag_errno(diag, "cannot size %s", path);
	int error = map_file(region, MAP_SHARED, path, diag);
	if (error)
		return error;
	/* Pages first: writing to one that the file system has no room for would be a SIGBUS. */
	if (fallocate(region->fd, 0, 0, REGION_HEADER_BYTES) != 0)
		return diag_errno(diag, "cannot allocate %s", path);
	const struct region_header header = header_of(config, &region->limits);
	memcpy(region->header, &header, offsetof(struct region_header, message));
	region->id = header.region_id;
	region->pc_low = region->pc_ready = PC_FIRST;
	region->image_number = calloc(region->limits.image_max, sizeof(*region->image_number));
	if (!region->image_number)
		return diag_fail(diag, ENOMEM, "cannot make %s: no memory", path);
	error = allocate_first(region, config);
	if (error)
		return diag_fail(diag, -error, "cannot allocate %s: %s", path, strerror(-error));
	/* Written last: a region that was left incomplete, since the logger was killed, has no magic number. */
	STORE_RELEASE(&region->header->magic, REGION_MAGIC);
	return 0;
}

int region_create(struct region *region, int directory, const char *name, const char *path,
		  const struct region_config *config, struct diag *diag)
{
	*region = (struct region){.fd = -1, .buffer_min = config->buffer_min};
	int error = config_check(config, diag);
	if (error)
		return error;
	region->limits = limits_of(config);
	if (!layout_compute(&region->limits))
		return diag_fail(diag, EINVAL, "cannot lay out %s: too many threads, images or program counters", path);
	region->fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (region->fd < 0)
		return diag_errno(diag, "cannot make %s", path);
	error = create(region, path, config, diag);
	if (error) {
		region_close(region);
		unlinkat(directory, name, 0);
	}
	return error;
}

/* ---- adopting ---- */

/* Find which rows of images are in use. */
static int adopt_images(struct region *region, struct diag *diag)
{
	region->image_number = calloc(region->limits.image_max, sizeof(*region->image_number));
	if (!region->image_number)
		return diag_fail(diag, ENOMEM, "no memory");
	for (uint32_t row = 0; row < region->limits.image_max; row++) {
		uint32_t number = LOAD_ACQUIRE(&region_image(region, row)->number);
		region->image_number[row] = number % region->limits.image_max == row ? number : 0;
	}
	return 0;
}

/* Adopt the region, as far as its header describes it; the rest is checked when it is read. */
static int adopt(struct region *region, const char *path, struct diag *diag)
{
	struct stat status;
	if (fstat(region->fd, &status) != 0)
		return diag_errno(diag, "cannot open %s", path);
	struct region_header found;
	struct region_limits *limits = &region->limits;
	if (!S_ISREG(status.st_mode) || pread(region->fd, &found, sizeof(found), 0) != sizeof(found))
		return diag_fail(diag, EINVAL, "%s is no region: it is too small", path);
	*limits = found.limits;
	if (found.magic != REGION_MAGIC || found.version != REGION_VERSION || found.header_bytes != REGION_HEADER_BYTES)
		return diag_fail(diag, EINVAL, "%s is no region of this version", path);
	if (!layout_compute(limits) || limits->region_bytes != found.limits.region_bytes ||
	    limits->buffer_offset != found.limits.buffer_offset)
		return diag_fail(diag, EINVAL, "%s is damaged: its limits do not fit each other", path);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (*field(limits, parts[i].offset_field) != *field(&found.limits, parts[i].offset_field))
			return diag_fail(diag, EINVAL, "%s is damaged: its parts are not where they belong", path);
	region->bytes = limits->region_bytes;
	region->is_cut = (uint64_t)status.st_size < limits->region_bytes;
	/* Marks of what is taken go to private memory. Until everything is where it belongs, the file is as the logger
	   left it. */
	int error = map_file(region, MAP_PRIVATE | MAP_NORESERVE, path, diag);
	if (error)
		return error;
	region->id = found.region_id;
	region->process_ready = at_most(found.process_ready, limits->process_max);
	region->entry_ready = region->entry_room = at_most(found.entry_ready, limits->entry_max);
	region->file_ready = region->file_room = at_most(found.file_ready, limits->file_max);
	region->image_ready = found.image_ready;
	region->image_room = limits->image_max;
	region->name_ready = at_most(found.name_ready, limits->name_max);
	region->heap_ready = at_most(found.heap_ready, limits->heap_max);
	region->code_ready = at_most(found.code_ready, limits->code_max);
	region->slot_ready = at_most(found.slot_ready, limits->slot_max);
	region->pc_low = found.pc_low >= PC_FIRST ? found.pc_low : PC_FIRST;
	region->pc_ready = at_most(found.pc_ready, at_most((uint64_t)region->pc_low + limits->pc_max, PC_LAST));
	region->buffer_ready = at_most(found.buffer_ready, limits->buffer_max);
	return adopt_images(region, diag);
}

int region_open(struct region *region, const char *path, struct diag *diag)
{
	*region = (struct region){.fd = -1};
	region->fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (region->fd < 0)
		return diag_errno(diag, "cannot open %s", path);
	int error = adopt(region, path, diag);
	if (error)
		region_close(region);
	return error;
}

void region_let_go(const struct region *region)
{
	struct region_header *header = map_alone(region->fd, REGION_HEADER_BYTES, MAP_SHARED);
	if (header == MAP_FAILED)
		return;
	uint32_t guard = guard_add(header, REGION_HEADER_BYTES);
	__atomic_fetch_and(&header->options, ~(uint32_t)OPTION_ENABLED, __ATOMIC_RELEASE);
	STORE_RELEASE(&header->state, REGION_DETACHED);
	guard_remove(guard);
	munmap(header, REGION_HEADER_BYTES);
}

void region_forget_buffers(struct region *region)
{
	uint64_t from = region->limits.buffer_offset;
	if (region->fd >= 0 && from < region->bytes)
		fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
			  (off_t)(region->bytes - from));
}

void region_close(struct region *region)
{
	guard_remove(region->guard);
	region->guard = 0;
	if (region->header)
		munmap(region->header, region->bytes);
	if (region->fd >= 0)
		close(region->fd);
	free(region->idle);
	region->idle = NULL;
	free(region->image_number);
	region->image_number = NULL;
	intern_fini(&region->files);
	region->header = NULL;
	region->fd = -1;
}

bool region_is_damaged(struct region *region)
{
	struct stat status;
	region->is_cut = region->is_cut || (region->fd >= 0 && fstat(region->fd, &status) == 0 &&
					    (uint64_t)status.st_size < region->bytes);
	return region->is_cut || guard_is_damaged(region->guard);
}

/* ---- growing ---- */

static uint32_t buffers_in(const struct region *region, uint32_t state)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < region->buffer_ready; i++)
		count += LOAD(&region_buffer(region, i)->state) == state;
	return count;
}

static uint32_t free_slots(const struct region *region)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < region->slot_ready; i++)
		count += LOAD(&region_slot(region, i)->state) == SLOT_FREE;
	return count;
}

static uint32_t free_processes(const struct region *region)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < region->process_ready; i++)
		count += LOAD(&region_process(region, i)->state) == PROCESS_FREE;
	return count;
}

/* Allocate the memory of trimmed buffers first. */
static void buffers_fetch(struct region *region, uint32_t want)
{
	assert(region->buffers_away <= region->buffer_ready);
	const struct region_limits *limits = &region->limits;
	for (uint32_t i = 0; i < region->buffer_ready && region->buffers_away && want; i++) {
		struct region_buffer *head = region_buffer(region, i);
		if (LOAD(&head->state) != BUFFER_AWAY)
			continue;
		if (allocate(region, limits->buffer_offset, limits->buffer_size, i, i + 1) != 0) {
			region->is_short = true;
			return;
		}
		region->buffers_away--;
		want--;
		STORE_RELEASE(&head->state, BUFFER_FREE);
		region_note_progress(region);
	}
}

static void grow_buffers(struct region *region)
{
	assert(region->buffers_away <= region->buffer_ready);
	uint32_t there = region->buffer_ready - region->buffers_away, used = there - buffers_in(region, BUFFER_FREE);
	if (used < region->buffers_used)
		used = region->buffers_used;
	region->buffers_used = 0;
	if (used <= there - (there + 3) / 4)
		return;
	if (region->buffers_away)
		buffers_fetch(region, there);
	else
		raise_buffers(region, 2 * (uint64_t)region->buffer_ready);
}

void region_grow(struct region *region)
{
	struct region_header *header = region->header;
	region->is_short = false;
	grow_buffers(region);
	uint64_t pcs = LOAD(&header->pc_count);
	if (pcs + PC_AHEAD / 2 > region->pc_ready || pcs + pcs / 4 > region->pc_ready)
		raise_pc(region, pcs + pcs / 2 + PC_AHEAD);
	if (LOAD(&header->heap_count) > region->heap_ready / 2)
		raise_heap(region, 2 * (uint64_t)region->heap_ready);
	uint64_t codes = LOAD(&header->code_count);
	if (codes && codes + CODE_AHEAD / 2 > region->code_ready)
		raise_code(region, codes + codes / 2 + CODE_AHEAD);
	if (LOAD(&header->name_count) > region->name_ready / 2)
		raise_name(region, 2 * (uint64_t)region->name_ready);
	if (region->process_ready < region->limits.process_max && free_processes(region) < region->process_ready / 2)
		raise_process(region, 2 * (uint64_t)region->process_ready);
	if (region->slot_ready < region->limits.slot_max && free_slots(region) < region->slot_ready / 2 &&
	    raise_slot(region, 4 * (uint64_t)region->slot_ready) == 0)
		region_note_slots(region);
	STORE(&header->is_short, region->is_short || region->slot_ready == region->limits.slot_max);
}

/* ---- giving back ---- */

/* A buffer's head at the last check, and at how many checks in a row it was free and the same. */
struct region_idle {
	uint32_t slot, sequence, intervals;
};

static bool is_unused(struct region_idle *idle, const struct region_buffer *head)
{
	uint32_t slot = LOAD(&head->slot), sequence = LOAD(&head->sequence);
	bool is_same = LOAD(&head->state) == BUFFER_FREE && slot == idle->slot && sequence == idle->sequence;
	*idle = (struct region_idle){slot, sequence, is_same ? idle->intervals + 1 : 0};
	return is_same;
}

/* Trim a buffer. A recorder that claims it at this moment keeps it. */
static void buffer_send_away(struct region *region, uint32_t index)
{
	assert(index < region->buffer_ready);
	const struct region_limits *limits = &region->limits;
	if (!swap_if(&region_buffer(region, index)->state, BUFFER_FREE, BUFFER_AWAY))
		return;
	region->buffers_away++;
	fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)(limits->buffer_offset + (uint64_t)index * limits->buffer_size), limits->buffer_size);
}

void region_trim(struct region *region, uint32_t intervals)
{
	if (!region->idle)
		region->idle = calloc(region->limits.buffer_max, sizeof(*region->idle));
	/* Recorders take the lowest free buffer, so the highest ones are unused. */
	for (uint32_t i = region->buffer_ready; region->idle && i-- > 0;) {
		bool is_idle =
			is_unused(&region->idle[i], region_buffer(region, i)) && region->idle[i].intervals >= intervals;
		if ((is_idle || !intervals) && region->buffer_ready - region->buffers_away > region->buffer_min)
			buffer_send_away(region, i);
	}
}

/* ---- the logger's rows ---- */

/* Return the index of a file, which is added if it is new, or REGION_NONE. */
static uint32_t file_find(struct region *region, const struct region_file *file)
{
	assert(region->file_ready <= region->file_room);
	if (region->files.count > region->file_ready)
		return REGION_NONE;
	uint32_t index = intern_bytes(&region->files, file, sizeof(*file));
	if (index < region->file_ready)
		return index;
	if (index >= region->limits.file_max ||
	    make_room(region, &region->file_room, region->limits.file_offset, sizeof(*file),
		      index < region->file_room ? 0 : 2 * (uint64_t)index, region->limits.file_max) != 0)
		return REGION_NONE;
	*region_file(region, index) = *file;
	region->file_ready = index + 1;
	STORE_RELEASE(&region->header->file_ready, index + 1);
	return index;
}

/* Return the number for a new image, after the newest one's, whose row is free; 0: there is none. */
static uint32_t image_number_find(struct region *region)
{
	const uint32_t max = region->limits.image_max;
	for (uint32_t i = 1; i <= max; i++) {
		uint32_t number = region->image_ready + i, row = number % max;
		if (!number || region->image_number[row])
			continue;
		return make_room(region, &region->image_room, region->limits.image_offset, sizeof(struct region_image),
				 row < region->image_room ? 0 : 2 * (uint64_t)row, max) == 0
			       ? number
			       : 0;
	}
	return 0;
}

uint32_t region_add_image(struct region *region, const struct region_image *image, const struct region_file *file)
{
	uint32_t index = file_find(region, file), number = index == REGION_NONE ? 0 : image_number_find(region);
	if (!number)
		return REGION_NONE;
	uint32_t row = number % region->limits.image_max;
	struct region_image *added = region_image(region, row);
	region->image_number[row] = number;
	/* Readers that see other fields of the new row find another number than before. */
	STORE(&added->number, 0);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	struct region_image filled = *image;
	filled.number = 0;
	filled.file = index;
	*added = filled;
	STORE_RELEASE(&added->number, number);
	region->image_ready = number;
	/* Pairs with the recorder's acquire: the row is whole. */
	STORE_RELEASE(&region->header->image_ready, number);
	return row;
}

void region_unload_image(struct region *region, uint32_t row, uint64_t ticks)
{
	STORE(&region_image(region, row)->unload_ticks, ticks);
	region->has_unloads = true;
}

void region_free_image(struct region *region, uint32_t row)
{
	assert(row < region->limits.image_max);
	STORE_RELEASE(&region_image(region, row)->number, 0);
	region->image_number[row] = 0;
}

/* ---- program counters ---- */

uint32_t region_retire_pcs(struct region *region)
{
	const uint32_t count = LOAD(&region->header->pc_count), step = region->limits.pc_max / 8;
	const uint64_t end = (uint64_t)region->pc_low - PC_FIRST + region->limits.pc_max;
	if (count > region->pc_ready || count + step <= end || end >= PC_LAST)
		return region->pc_low;
	uint32_t low = region->pc_low + step;
	STORE(&region->header->pc_low, low);
	/* A tree leads from older rows to newer ones. */
	if (LOAD(&region->header->pc_root) < low)
		STORE(&region->header->pc_root, 0);
	/* Pairs with the recorder's fence: it sees pc_low, or its key is seen now. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return low;
}

void region_reuse_pcs(struct region *region, uint32_t low)
{
	for (uint32_t id = region->pc_low; id < low; id++) {
		struct region_pc *row = region_pc(region, id);
		STORE(&row->key, 0);
		STORE(&row->child[0], 0);
		STORE(&row->child[1], 0);
	}
	region->pc_low = low;
	raise_pc(region, PC_LAST);
}

uint32_t region_add_entry(struct region *region, const struct region_entry *entry)
{
	assert(region->entry_ready <= region->entry_room);
	uint32_t index = region->entry_ready;
	if (index >= region->limits.entry_max ||
	    make_room(region, &region->entry_room, region->limits.entry_offset, sizeof(*entry),
		      index < region->entry_room ? 0 : 2 * (uint64_t)index, region->limits.entry_max) != 0)
		return REGION_NONE;
	*region_entry(region, index) = *entry;
	region->entry_ready = index + 1;
	STORE_RELEASE(&region->header->entry_ready, index + 1);
	return index;
}

/* ---- views ---- */

#define VIEW(type) \
	struct type *type(const struct region *region, uint32_t index) \
	{ \
		return type##_at(region->header, &region->limits, index); \
	}
VIEW(region_process)
VIEW(region_entry)
VIEW(region_file)
VIEW(region_image)
VIEW(region_heap)
VIEW(region_heap_name)
VIEW(region_code)
VIEW(region_slot)
VIEW(region_buffer)
#undef VIEW

struct region_pc *region_pc(const struct region *region, uint32_t id)
{
	return region_pc_at(region->header, &region->limits, id % region->limits.pc_max);
}

uint8_t *region_buffer_bytes(const struct region *region, uint32_t index)
{
	return region_buffer_bytes_at(region->header, &region->limits, index);
}

bool region_exit_status(const struct region_process *process, uint32_t pid, int *status)
{
	int left = region_exit_decode(LOAD_ACQUIRE(&process->exit_reported), pid);
	*status = left < 0 ? 0 : left;
	return left >= 0;
}
