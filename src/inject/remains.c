/* SPDX-License-Identifier: MIT */
#include "inject/remains.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/patch_bytes.h"
#include "inject/foreign_file.h"
#include "os/fd.h"
#include "recorder/recorder.h"

enum { PAGE = 4096, GAP_MAX = 4, PIECE_BYTES_MAX = 1 << 30 };
#define TEXT_BYTES_MAX (UINT64_C(1) << 32)

/* ---- pieces ---- */

static bool is_anonymous(const struct proc_map *map)
{
	return !map->inode && (!map->path[0] || strncmp(map->path, "[anon", 5) == 0) && map->permissions[3] == 'p';
}

/* Return whether all of [low, high) is mapped as pieces of this kind are. */
static bool is_mapped(const struct proc_map *maps, int count, uint64_t low, uint64_t high, bool is_code)
{
	if (low >= high || low % PAGE || high % PAGE || high - low > PIECE_BYTES_MAX)
		return false;
	for (int i = 0; i < count && low < high; i++) {
		if (maps[i].high <= low)
			continue;
		if (maps[i].low > low || !is_anonymous(&maps[i]) || (maps[i].permissions[2] == 'x') != is_code)
			return false;
		low = maps[i].high;
	}
	return low >= high;
}

/* Add a piece. noted_at: address of its row in the process's own list, or 0. */
static void piece_add(struct pieces *pieces, const struct proc_map *maps, int count, struct inject_piece piece)
{
	for (uint32_t i = 0; i < pieces->count; i++)
		if (piece.low < pieces->item[i].high && pieces->item[i].low < piece.high)
			return;
	if (pieces->count == PIECES_MAX || !is_mapped(maps, count, piece.low, piece.high, piece.is_code))
		return;
	pieces->item[pieces->count++] = piece;
	pieces->code_count += piece.is_code;
	pieces->bytes += piece.high - piece.low;
}

/* Add the bytes of the executable's own memory that lead into the recorder's code. */
static void doors_add(struct pieces *pieces, uint64_t low, uint64_t high)
{
	if (low >= high || high - low > INJECT_DOOR_BYTES * INJECT_DOOR_MAX)
		return;
	pieces->item[pieces->count++] =
		(struct inject_piece){.low = low, .high = high, .is_code = true, .is_door = true};
	pieces->code_count++;
}

/* Return whether this recording's region is where it was mapped. If not, the process has executed another image
   since. */
static bool has_region(const struct inject *inject, const struct proc_map *maps, int count)
{
	struct stat status;
	for (int i = 0; i < count; i++)
		if (maps[i].low == inject->region_address)
			return maps[i].high == maps[i].low + inject->region->bytes &&
			       fstat(inject->region->fd, &status) == 0 && maps[i].inode == status.st_ino;
	return false;
}

static void region_piece_add(struct pieces *pieces, uint64_t low, uint64_t high)
{
	if (pieces->count == PIECES_MAX || low >= high)
		return;
	pieces->item[pieces->count++] = (struct inject_piece){.low = low, .high = high};
	pieces->bytes += high - low;
}

/* Read the process's own list of mappings. Return false if there is none. */
static bool list_read(int memory, uint64_t list_at, uint64_t region_at, struct recorder_mappings *list)
{
	return list_at && remote_read(memory, list_at, list, sizeof(*list)) && list->magic == RECORDER_MAPPINGS_MAGIC &&
	       list->region == region_at;
}

static void pieces_of_list(struct pieces *pieces, int memory, uint64_t list_at, uint64_t region_at,
			   const struct proc_map *maps, int count)
{
	struct recorder_mappings list;
	if (!list_read(memory, list_at, region_at, &list))
		return;
	pieces->list_at = list_at;
	pieces->region_at = region_at;
	doors_add(pieces, list.doors.low, list.doors.high);
	for (int i = 0; i < RECORDER_MAPPING_COUNT; i++) {
		const struct recorder_mapping *mapping = &list.mapping[i];
		if (mapping->low)
			piece_add(pieces, maps, count,
				  (struct inject_piece){.low = mapping->low,
							.high = mapping->high,
							.is_code = i < RECORDER_MAPPING_CODE_COUNT,
							.noted_at = list_at +
								    offsetof(struct recorder_mappings, mapping) +
								    (uint64_t)i * sizeof(*mapping)});
	}
	piece_add(pieces, maps, count, (struct inject_piece){.low = list.data.low, .high = list.data.high});
}

void pieces_of(struct pieces *pieces, const struct inject *inject, const struct proc_map *maps, int count)
{
	*pieces = (struct pieces){.list_at =
					  inject->recorder ? inject->recorder + offsetof(struct recorder, mappings) : 0,
				  .region_at = inject->region_address};
	if (inject->region_address && !has_region(inject, maps, count))
		return;
	doors_add(pieces, inject->doors.low, inject->doors.next);
	for (uint32_t i = 0; i < inject->island_count; i++)
		piece_add(pieces, maps, count,
			  (struct inject_piece){
				  .low = inject->island[i].low, .high = inject->island[i].high, .is_code = true});
	piece_add(pieces, maps, count,
		  (struct inject_piece){.low = inject->tables, .high = inject->tables + inject->tables_bytes});
	piece_add(pieces, maps, count,
		  (struct inject_piece){.low = inject->recorder - RECORDER_GUARD_BYTES,
					.high = inject->fork_wiped + RECORDER_WIPED_BYTES});
	if (inject->region_address)
		region_piece_add(pieces, inject->region_address, inject->region_address + inject->region->bytes);
}

/* Return whether a mapping is of a region that nobody records into any more, or of the region with this inode. */
static bool is_over(int memory, const struct proc_map *map, uint64_t inode, struct region_header *header)
{
	const char *name = strrchr(map->path, '/');
	if (!name || strncmp(name, "/region.", 8) != 0 || strcmp(map->permissions, "rw-s") != 0 || map->offset)
		return false;
	if (!remote_read(memory, map->low, header, sizeof(*header)) || header->magic != REGION_MAGIC ||
	    header->version != REGION_VERSION || header->limits.region_bytes != map->high - map->low)
		return false;
	/* One whose attach came to nothing has no owner yet. */
	bool is_abandoned = !header->owner && strstr(name, " (deleted)");
	return map->inode == inode || header->state == REGION_DETACHED || (header->owner & REGION_OWNER_DIED) ||
	       is_abandoned;
}

bool pieces_find(struct pieces *pieces, int memory, const struct proc_map *maps, int count, uint64_t inode)
{
	*pieces = (struct pieces){.count = 0};
	for (int i = 0; i < count; i++) {
		struct region_header header;
		if (!is_over(memory, &maps[i], inode, &header))
			continue;
		pieces_of_list(pieces, memory, header.mappings, maps[i].low, maps, count);
		region_piece_add(pieces, maps[i].low, maps[i].high);
		return true;
	}
	return false;
}

/* Unmap the recorder's own pools, one after the other. They are read only now, when no thread adds to them any more. */
static void pools_unmap(const struct pieces *pieces, struct remote *remote)
{
	enum { POOLS_MAX = 4096 };
	struct recorder_mappings list;
	struct proc_map *maps = NULL;
	uint64_t at = 0;
	int count = proc_read_maps(remote->pid, &maps), left = POOLS_MAX;
	if (list_read(remote->memory, pieces->list_at, pieces->region_at, &list))
		remote_read(remote->memory, list.pools, &at, sizeof(at));
	while (at && left--) {
		struct recorder_pool pool;
		if (!remote_read(remote->memory, at, &pool, sizeof(pool)) || pool.bytes > PIECE_BYTES_MAX)
			break;
		uint64_t next = (uint64_t)pool.next, high = (at + pool.bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1),
			 low = at - (pool.guard_bytes == RECORDER_GUARD_BYTES ? pool.guard_bytes : 0);
		if (!is_mapped(maps, count, low, high, false))
			break;
		/* If this process is killed here, a later recording must not take the program's next mapping at this
		   address for a pool. */
		remote_write(remote->memory, list.pools, &next, sizeof(next));
		remote_call(remote, SYS_munmap, low, high - low, 0, 0, 0, 0);
		at = next;
	}
	free(maps);
}

void pieces_unmap(const struct pieces *pieces, struct remote *remote)
{
	static const uint64_t none = 0;
	pools_unmap(pieces, remote);
	for (uint32_t i = 0; i < pieces->count; i++) {
		const struct inject_piece *piece = &pieces->item[i];
		if (piece->noted_at)
			remote_write(remote->memory, piece->noted_at, &none, sizeof(none));
		if (!piece->is_door)
			remote_call(remote, SYS_munmap, piece->low, piece->high - piece->low, 0, 0, 0, 0);
	}
}

/* ---- patches ---- */

static bool leads_into(const struct pieces *pieces, uint64_t address)
{
	for (uint32_t i = 0; i < pieces->count; i++)
		if (pieces->item[i].is_code && address >= pieces->item[i].low && address < pieces->item[i].high)
			return true;
	return false;
}

static bool is_in_door(const struct pieces *pieces, uint64_t address)
{
	for (uint32_t i = 0; i < pieces->count; i++)
		if (pieces->item[i].is_door && address >= pieces->item[i].low && address < pieces->item[i].high)
			return true;
	return false;
}

/* Return whether the kernel says that the page is the process's own, and so may be patched. Without an answer it
   may. */
static bool is_own_page(int pagemap, uint64_t address)
{
	enum { FILE_PAGE = 61, SWAPPED = 62, PRESENT = 63 };
	uint64_t entry;
	if (pagemap < 0 ||
	    pread(pagemap, &entry, sizeof(entry), (off_t)(address / PAGE * sizeof(entry))) != sizeof(entry))
		return true;
	return (entry >> SWAPPED & 1) || ((entry >> PRESENT & 1) && !(entry >> FILE_PAGE & 1));
}

/* Bytes of an image's code around a page, in memory and in its file. */
struct compared {
	uint64_t low;
	uint32_t size;
	uint8_t now[PAGE + 2 * PATCH_BYTES_MAX], file[PAGE + 2 * PATCH_BYTES_MAX];
};

/* Return whether the bytes at i lead into the pieces: a jump, or an address for one. */
static bool leads_at(const struct compared *compared, uint32_t i, const struct pieces *pieces)
{
	uint64_t absolute = 0, to;
	if (i + CPU_JUMP_BYTES <= compared->size && patch_get_jump(compared->now + i, compared->low + i, &to) &&
	    leads_into(pieces, to))
		return true;
	if (i + sizeof(absolute) <= compared->size)
		memcpy(&absolute, compared->now + i, sizeof(absolute));
	return leads_into(pieces, absolute);
}

/* Return the end of the bytes that differ from the file from `from` on, short gaps included. */
static uint32_t run_end(const struct compared *compared, uint32_t from)
{
	uint32_t end = from;
	for (uint32_t i = from; i < compared->size && i <= end + GAP_MAX && i - from < PATCH_BYTES_MAX; i++)
		if (compared->now[i] != compared->file[i])
			end = i + 1;
	return end;
}

static bool patch_add(struct patches *patches, const struct compared *compared, uint32_t from, uint32_t end,
		      bool is_door)
{
	const struct patch *last = patches->count ? &patches->items[patches->count - 1] : NULL;
	uint64_t address = compared->low + from, last_end = last ? last->address + last->size : 0;
	/* One that reaches into the next page is met again there. */
	if (last_end >= compared->low + end)
		return true;
	if (last_end > address) {
		from += (uint32_t)(last_end - address);
		address = last_end;
	}
	struct patch *larger = realloc(patches->items, (patches->count + 1) * sizeof(*larger));
	if (!larger)
		return false;
	patches->items = larger;
	struct patch *patch = &patches->items[patches->count++];
	*patch = (struct patch){.address = address, .size = end - from, .is_door = is_door};
	memcpy(patch->now, compared->now + from, patch->size);
	memcpy(patch->file, compared->file + from, patch->size);
	return true;
}

/* Find doors in the bytes that were read: all bytes of doors that differ from the file. */
static bool doors_in(struct patches *patches, const struct compared *compared, const struct pieces *pieces)
{
	for (uint32_t i = 0; i < compared->size; i++) {
		if (compared->now[i] == compared->file[i] || !is_in_door(pieces, compared->low + i))
			continue;
		uint32_t end = i + 1;
		while (end < compared->size && end - i < PATCH_BYTES_MAX && is_in_door(pieces, compared->low + end))
			end++;
		if (!patch_add(patches, compared, i, end, true))
			return false;
		i = end - 1;
	}
	return true;
}

/* Find patches in the bytes that were read. The first byte of one may be the original. */
static bool patches_in(struct patches *patches, const struct compared *compared, const struct pieces *pieces)
{
	for (uint32_t i = 0; i < compared->size;) {
		if (compared->now[i] == compared->file[i] || is_in_door(pieces, compared->low + i)) {
			i++;
			continue;
		}
		uint32_t end = run_end(compared, i);
		bool leads = false;
		for (uint32_t at = i ? i - 1 : 0; at < end && !leads; at++)
			leads = leads_at(compared, at, pieces);
		if (leads && !patch_add(patches, compared, i, end, false))
			return false;
		i = end;
	}
	return doors_in(patches, compared, pieces);
}

static bool around_read(struct compared *compared, int memory, const struct proc_map *map, uint64_t page)
{
	uint64_t low = page - map->low < PATCH_BYTES_MAX ? map->low : page - PATCH_BYTES_MAX;
	uint64_t high = map->high - page < PAGE + PATCH_BYTES_MAX ? map->high : page + PAGE + PATCH_BYTES_MAX;
	compared->low = low;
	compared->size = (uint32_t)(high - low);
	return remote_read(memory, low, compared->now, compared->size);
}

/* Read the same bytes of the file. Bytes after its end read as zeros, as the kernel maps them. */
static bool around_read_file(struct compared *compared, int fd, const struct proc_map *map)
{
	memset(compared->file, 0, sizeof(compared->file));
	return fd >= 0 &&
	       pread(fd, compared->file, compared->size, (off_t)(map->offset + (compared->low - map->low))) > 0;
}

/* Return whether any of the bytes leads into the pieces, whatever the file has. */
static bool leads_anywhere(const struct compared *compared, const struct pieces *pieces)
{
	for (uint32_t i = 0; i < compared->size; i++)
		if (leads_at(compared, i, pieces))
			return true;
	return false;
}

int patches_find(struct patches *patches, pid_t pid, int memory, const struct pieces *pieces,
		 const struct proc_map *maps, int count, struct diag *diag)
{
	char path[64];
	int error = 0;
	struct compared compared;
	*patches = (struct patches){NULL, 0};
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	int pagemap = pieces->code_count ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	for (int i = 0; i < count && pieces->code_count && !error; i++) {
		const struct proc_map *map = &maps[i];
		if (!map->inode || map->permissions[2] != 'x' || map->permissions[3] != 'p' ||
		    map->high - map->low > TEXT_BYTES_MAX)
			continue;
		struct foreign_file file = {.fd = -1};
		for (uint64_t page = map->low; page < map->high && !error; page += PAGE) {
			if (!is_own_page(pagemap, page) || !around_read(&compared, memory, map, page) ||
			    !leads_anywhere(&compared, pieces))
				continue;
			if (file.fd < 0)
				foreign_open_mapped(&file, pid, map, false);
			if (!around_read_file(&compared, file.fd, map))
				error = diag_fail(diag, ENOENT, "%s is gone, so its functions cannot be restored",
						  map->path);
			else if (!patches_in(patches, &compared, pieces))
				error = diag_fail(diag, ENOMEM, "no memory for the patches of process %d", (int)pid);
		}
		fd_close(&file.fd);
	}
	if (pagemap >= 0)
		close(pagemap);
	return error;
}
