/* SPDX-License-Identifier: MIT */
#include "region/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	SLOT_DEFAULT = 4096, PC_DEFAULT = 1 << 20, IMAGE_DEFAULT = 4096,
	SLOT_LIMIT = 1 << 16, PC_LIMIT = 1 << 24, IMAGE_LIMIT = 1 << 16, BUFFER_LIMIT = 1 << 20,
	BUFFER_SIZE_LIMIT = 1 << 20,
	HEAP_FIRST = 4096, SLOT_FIRST = 64, PC_FIRST_READY = 16 * 1024, IMAGE_FIRST = 64
};

/* ---- where things lie: a function of the limits, the same when a region is made and when it is adopted ---- */

/** One array of the region. */
struct part { size_t offset_field, max_field, size; };

#define PART(name, type) {offsetof(struct region_header, name##_offset), offsetof(struct region_header, name##_max), sizeof(struct type)}
/* In the order of the file. */
static const struct part parts[] = {
	PART(process, region_process), PART(entry, region_entry), PART(image, region_image),
	PART(heap, region_heap), PART(name, region_heap_name), PART(slot, region_slot), PART(pc, region_pc),
	{offsetof(struct region_header, head_offset), offsetof(struct region_header, buffer_max), sizeof(struct region_buffer)},
};
#undef PART

static uint32_t *field(struct region_header *header, size_t offset)
{
	return (uint32_t *)((uint8_t *)header + offset);
}

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* Fill the offsets and region_bytes from the limits. False when these are beyond ours. */
static bool layout_compute(struct region_header *header)
{
	uint64_t at = REGION_HEADER_BYTES;
	if (header->process_max == 0 || header->process_max > REGION_PROCESS_MAX || header->entry_max == 0 ||
	    header->entry_max > REGION_ENTRY_MAX || header->heap_max == 0 || header->heap_max > REGION_HEAP_MAX ||
	    header->name_max == 0 || header->name_max > REGION_NAME_MAX || header->image_max == 0 || header->image_max > IMAGE_LIMIT || header->slot_max == 0 || header->slot_max > SLOT_LIMIT ||
	    header->pc_max <= PC_FIRST || header->pc_max > PC_LIMIT || header->buffer_max == 0 || header->buffer_max > BUFFER_LIMIT ||
	    header->buffer_apart >= header->buffer_max || header->buffer_size == 0 || header->buffer_size % PAGE != 0 || header->buffer_size > BUFFER_SIZE_LIMIT)
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		*field(header, parts[i].offset_field) = (uint32_t)at;
		at = page_up(at + (uint64_t)*field(header, parts[i].max_field) * parts[i].size);
	}
	header->buffer_offset = at;
	header->region_bytes = at + (uint64_t)header->buffer_max * header->buffer_size;
	return at <= UINT32_MAX;
}

/* ---- pages ---- */

/* Allocate the pages of elements [from, to) of an array. */
static int allocate(const struct region *region, uint64_t offset, uint64_t size, uint32_t from, uint32_t to)
{
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

/* Allocate elements up to `want` and tell the target. */
static int raise(const struct region *region, uint32_t *ready, uint32_t *shared, uint64_t offset, uint64_t size, uint32_t want)
{
	int error = want > *ready ? allocate(region, offset, size, *ready, want) : 0;
	if (error || want <= *ready)
		return error;
	*ready = want;
	/* Pairs with the recorder's acquire: what lies below the count is allocated. */
	__atomic_store_n(shared, want, __ATOMIC_RELEASE);
	region_note_progress(region);
	return 0;
}

static int raise_slots(struct region *region, uint64_t want)
{
	const struct region_header *limits = &region->limits;
	return raise(region, &region->slot_ready, &region->header->slot_ready, limits->slot_offset, sizeof(struct region_slot),
		     at_most(want, limits->slot_max));
}

static int raise_heaps(struct region *region, uint64_t want)
{
	const struct region_header *limits = &region->limits;
	return raise(region, &region->heap_ready, &region->header->heap_ready, limits->heap_offset, sizeof(struct region_heap),
		     at_most(want, limits->heap_max));
}

static int raise_pcs(struct region *region, uint64_t want)
{
	const struct region_header *limits = &region->limits;
	return raise(region, &region->pc_ready, &region->header->pc_ready, limits->pc_offset, sizeof(struct region_pc),
		     at_most(want, limits->pc_max));
}

static int raise_buffers(struct region *region, uint64_t want)
{
	const struct region_header *limits = &region->limits;
	uint32_t count = at_most(want, limits->buffer_max);
	if (count <= region->buffer_ready)
		return 0;
	int error = allocate(region, limits->head_offset, sizeof(struct region_buffer), region->buffer_ready, count);
	return error ? error
		     : raise(region, &region->buffer_ready, &region->header->buffer_ready, limits->buffer_offset, limits->buffer_size, count);
}

/* Everything that is there from the beginning. */
static int allocate_first(struct region *region, uint32_t buffers)
{
	const struct region_header *limits = &region->limits;
	int error = 0;
	if (fallocate(region->fd, 0, 0, limits->image_offset) != 0)
		return -errno;
	error = error ? error : allocate(region, limits->image_offset, sizeof(struct region_image), 0, at_most(IMAGE_FIRST, limits->image_max));
	error = error ? error : allocate(region, limits->name_offset, sizeof(struct region_heap_name), 0, limits->name_max);
	error = error ? error : raise_heaps(region, HEAP_FIRST);
	error = error ? error : raise_slots(region, SLOT_FIRST);
	error = error ? error : raise_pcs(region, PC_FIRST_READY);
	return error ? error : raise_buffers(region, buffers);
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
		return diag_fail(diag, EINVAL, "a buffer of %u bytes: it must be a multiple of 4096, at most 1 MiB", config->buffer_size);
	if (config->buffer_min == 0 || config->buffer_min > config->buffer_max || config->buffer_max > BUFFER_LIMIT)
		return diag_fail(diag, EINVAL, "from %u to %u buffers: there must be one at least, and no more than %d", config->buffer_min,
				 config->buffer_max, BUFFER_LIMIT);
	return 0;
}

static void limits_fill(struct region_header *limits, const struct region_config *config)
{
	*limits = (struct region_header){
		.magic = REGION_MAGIC, .version = REGION_VERSION, .header_bytes = REGION_HEADER_BYTES,
		.clock = config->clock, .options = config->options, .wait_limit_ms = config->wait_limit_ms,
		.process_max = REGION_PROCESS_MAX, .entry_max = REGION_ENTRY_MAX, .heap_max = REGION_HEAP_MAX,
		.name_max = REGION_NAME_MAX, .name_count = 1,
		.image_max = config->image_max ? config->image_max : IMAGE_DEFAULT,
		.slot_max = config->slot_max ? config->slot_max : SLOT_DEFAULT,
		.pc_max = config->pc_max ? config->pc_max : PC_DEFAULT,
		.buffer_max = config->buffer_max + config->buffer_apart, .buffer_apart = config->buffer_apart, .buffer_size = config->buffer_size,
		.pc_count = PC_FIRST,
	};
	boot_id_read(limits->boot_id);
	if (getrandom(&limits->region_id, sizeof(limits->region_id), 0) != sizeof(limits->region_id))
		limits->region_id = (uint64_t)getpid() << 32 ^ config->start_ticks;
}

static int map_shared(struct region *region, const char *path, struct diag *diag)
{
	void *mapping = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	if (mapping == MAP_FAILED)
		return diag_errno(diag, "cannot map %s", path);
	region->header = mapping;
	return 0;
}

static int create(struct region *region, const char *path, uint32_t buffers, struct diag *diag)
{
	region->bytes = region->limits.region_bytes;
	if (ftruncate(region->fd, (off_t)region->bytes) != 0)
		return diag_errno(diag, "cannot size %s", path);
	int error = map_shared(region, path, diag);
	if (error)
		return error;
	/* Pages first: writing to one that the file system has no room for would be a SIGBUS. */
	if (fallocate(region->fd, 0, 0, REGION_HEADER_BYTES) != 0)
		return diag_errno(diag, "cannot allocate %s", path);
	struct region_header header = region->limits;
	header.magic = 0;
	memcpy(region->header, &header, offsetof(struct region_header, mail));
	error = allocate_first(region, buffers);
	if (error)
		return diag_fail(diag, -error, "cannot allocate %s: %s", path, strerror(-error));
	/* Last: what is not whole has none, should we be killed meanwhile. */
	__atomic_store_n(&region->header->magic, region->limits.magic, __ATOMIC_RELEASE);
	return 0;
}

int region_create(struct region *region, const char *path, const struct region_config *config, struct diag *diag)
{
	*region = (struct region){.fd = -1};
	int error = config_check(config, diag);
	if (error)
		return error;
	limits_fill(&region->limits, config);
	if (!layout_compute(&region->limits))
		return diag_fail(diag, EINVAL, "cannot lay out %s: too many threads, images or program counters", path);
	region->id = region->limits.region_id;
	region->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (region->fd < 0)
		return diag_errno(diag, "cannot make %s", path);
	error = create(region, path, config->buffer_min, diag);
	if (error) {
		region_close(region);
		unlink(path);
	}
	return error;
}

/* ---- adopting ---- */

/* The file is a region of ours as far as its header tells; the rest is checked where it is read. */
static int adopt(struct region *region, const char *path, struct diag *diag)
{
	struct stat status;
	if (fstat(region->fd, &status) != 0)
		return diag_errno(diag, "cannot open %s", path);
	if (!S_ISREG(status.st_mode) || status.st_size < REGION_HEADER_BYTES)
		return diag_fail(diag, EINVAL, "%s is no region: it is too small", path);
	region->bytes = (size_t)status.st_size;
	int error = map_shared(region, path, diag);
	if (error)
		return error;
	struct region_header *limits = &region->limits, found;
	memcpy(&found, region->header, sizeof(found));
	*limits = found;
	if (found.magic != REGION_MAGIC || found.version != REGION_VERSION || found.header_bytes != REGION_HEADER_BYTES)
		return diag_fail(diag, EINVAL, "%s is no region of this version", path);
	if (!layout_compute(limits) || limits->region_bytes != region->bytes || limits->region_bytes != found.region_bytes ||
	    limits->buffer_offset != found.buffer_offset)
		return diag_fail(diag, EINVAL, "%s is damaged: its limits do not fit its size", path);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (*field(limits, parts[i].offset_field) != *field(&found, parts[i].offset_field))
			return diag_fail(diag, EINVAL, "%s is damaged: its parts are not where they belong", path);
	region->id = found.region_id;
	region->entry_ready = at_most(found.entry_ready, limits->entry_max);
	region->image_ready = at_most(found.image_ready, limits->image_max);
	region->heap_ready = at_most(found.heap_ready, limits->heap_max);
	region->slot_ready = at_most(found.slot_ready, limits->slot_max);
	region->pc_ready = at_most(found.pc_ready, limits->pc_max);
	region->buffer_ready = at_most(found.buffer_ready, limits->buffer_max);
	return 0;
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

void region_forget_buffers(struct region *region)
{
	uint64_t from = region->limits.buffer_offset;
	if (region->fd >= 0 && from < region->bytes)
		fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(region->bytes - from));
}

void region_close(struct region *region)
{
	if (region->header)
		munmap(region->header, region->bytes);
	if (region->fd >= 0)
		close(region->fd);
	region->header = NULL;
	region->fd = -1;
}

/* ---- growing ---- */

static uint32_t free_buffers(const struct region *region)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < region->buffer_ready; i++)
		count += __atomic_load_n(&region_buffer(region, i)->state, __ATOMIC_RELAXED) == BUFFER_FREE;
	return count;
}

static uint32_t free_slots(const struct region *region)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < region->slot_ready; i++)
		count += __atomic_load_n(&region_slot(region, i)->state, __ATOMIC_RELAXED) == SLOT_FREE;
	return count;
}

/* How many buffers there may be by now. */
static uint32_t buffers_most(const struct region *region)
{
	const struct region_header *limits = &region->limits;
	uint32_t most = limits->buffer_max - limits->buffer_apart;
	return region->buffer_ready < most ? most : at_most((uint64_t)most + region->slot_ready - free_slots(region), limits->buffer_max);
}

static void grow_buffers(struct region *region)
{
	uint32_t most = buffers_most(region), used = region->buffer_ready < most ? region->buffer_ready - free_buffers(region) : 0;
	if (used < region->buffers_used)
		used = region->buffers_used;
	if (used > region->buffer_ready - (region->buffer_ready + 3) / 4)
		raise_buffers(region, at_most(2 * (uint64_t)region->buffer_ready, most));
	region->buffers_used = 0;
}

void region_grow(struct region *region)
{
	grow_buffers(region);
	uint32_t pcs = __atomic_load_n(&region->header->pc_count, __ATOMIC_RELAXED);
	if (region->pc_ready < region->limits.pc_max && pcs > region->pc_ready / 2)
		raise_pcs(region, 2 * (uint64_t)region->pc_ready);
	if (region->heap_ready < region->limits.heap_max && __atomic_load_n(&region->header->heap_count, __ATOMIC_RELAXED) > region->heap_ready / 2)
		raise_heaps(region, 2 * (uint64_t)region->heap_ready);
	if (region->slot_ready < region->limits.slot_max && free_slots(region) < region->slot_ready / 2)
		raise_slots(region, 2 * (uint64_t)region->slot_ready);
}

/* ---- rows of the logger's ---- */

/* Make room for one more image beside what is ready; those are told of only when they are filled. */
static int image_room(const struct region *region)
{
	const struct region_header *limits = &region->limits;
	uint32_t index = region->image_ready, allocated = at_most(IMAGE_FIRST, limits->image_max);
	while (allocated < index)
		allocated *= 2;
	if (index < allocated)
		return 0;
	return allocate(region, limits->image_offset, sizeof(struct region_image), index, at_most(2 * (uint64_t)index, limits->image_max));
}

uint32_t region_add_image(struct region *region, const struct region_image *image)
{
	uint32_t index = region->image_ready;
	if (index >= region->limits.image_max || image_room(region) != 0)
		return UINT32_MAX;
	*region_image(region, index) = *image;
	region->image_ready = index + 1;
	/* Pairs with the recorder's acquire: the row is whole. */
	__atomic_store_n(&region->header->image_ready, index + 1, __ATOMIC_RELEASE);
	return index;
}

uint32_t region_add_entry(struct region *region, const struct region_entry *entry)
{
	uint32_t index = region->entry_ready;
	if (index >= region->limits.entry_max)
		return UINT32_MAX;
	*region_entry(region, index) = *entry;
	region->entry_ready = index + 1;
	__atomic_store_n(&region->header->entry_ready, index + 1, __ATOMIC_RELEASE);
	return index;
}

/* ---- views ---- */

#define VIEW(function, type, offset)                                                       \
	struct type *function(const struct region *region, uint32_t index)                 \
	{                                                                                  \
		return (struct type *)((uint8_t *)region->header + region->limits.offset) + index; \
	}
VIEW(region_process, region_process, process_offset)
VIEW(region_entry, region_entry, entry_offset)
VIEW(region_image, region_image, image_offset)
VIEW(region_heap, region_heap, heap_offset)
VIEW(region_heap_name, region_heap_name, name_offset)
VIEW(region_slot, region_slot, slot_offset)
VIEW(region_pc, region_pc, pc_offset)
VIEW(region_buffer, region_buffer, head_offset)
#undef VIEW

uint8_t *region_buffer_bytes(const struct region *region, uint32_t index)
{
	return (uint8_t *)region->header + region->limits.buffer_offset + (uint64_t)index * region->limits.buffer_size;
}

bool region_exit_status(const struct region_process *process, uint32_t pid, int *status)
{
	uint64_t told = __atomic_load_n(&process->exit_told, __ATOMIC_ACQUIRE);
	*status = (int)(told & 0xff);
	return told >> 8 == ((uint64_t)pid << 24 | 1);
}
