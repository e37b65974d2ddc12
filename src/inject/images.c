/* SPDX-License-Identifier: MIT */
#include "inject/images.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "inject/foreign_file.h"
#include "inject/patches.h"
#include "inject/remote.h"
#include "inject/target_fields.h"
#include "os/fd.h"
#include "region/atomic.h"

enum { PAGE = 4096, MAP_OFFSET = offsetof(struct r_debug, r_map), STATE_OFFSET = offsetof(struct r_debug, r_state) };

bool image_read_loaded(int memory, uint64_t base, struct region_image *image, struct region_file *file)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[REMOTE_SEGMENT_MAX];
	struct region_file unused;
	file = file ? file : &unused;
	if (!remote_read_segments(memory, base, &header, segments))
		return false;
	uint64_t first = UINT64_MAX, last = 0;
	for (int i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD)
			continue;
		if (segments[i].p_vaddr < first)
			first = segments[i].p_vaddr;
		if (segments[i].p_vaddr + segments[i].p_memsz > last)
			last = segments[i].p_vaddr + segments[i].p_memsz;
	}
	if (first >= last || last - first >= 1ull << PC_OFFSET_BITS)
		return false;
	image->base = base;
	file->first = first & ~(uint64_t)(PAGE - 1);
	image->bias = base - file->first;
	image->end = image->bias + ((last + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	for (int i = 0; i < header.e_phnum; i++) {
		uint64_t at = image->bias + segments[i].p_vaddr;
		if (segments[i].p_type == PT_GNU_EH_FRAME) {
			image->eh_frame_header = at;
			image->eh_frame_header_bytes = segments[i].p_memsz;
		} else if (segments[i].p_type == PT_NOTE && segments[i].p_memsz < 65536) {
			unsigned char notes[1024];
			size_t size = segments[i].p_memsz < sizeof(notes) ? segments[i].p_memsz : sizeof(notes);
			if (!remote_read(memory, at, notes, size))
				continue;
			for (size_t n = 0; n + sizeof(Elf64_Nhdr) <= size;) {
				Elf64_Nhdr note;
				memcpy(&note, notes + n, sizeof(note));
				size_t name = n + sizeof(note), text = name + ((note.n_namesz + 3ull) & ~3ull);
				if (note.n_namesz > size || note.n_descsz > size || text + note.n_descsz > size)
					break;
				if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
				    memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz <= sizeof(file->build_id)) {
					file->build_id_size = (uint8_t)note.n_descsz;
					memcpy(file->build_id, notes + text, note.n_descsz);
				}
				n = text + ((note.n_descsz + 3ull) & ~3ull);
			}
		}
	}
	return true;
}

/* As image_read_loaded(), of the image that begins with the mapping. Where its file system may wait, its memory may,
   too, and whoever waits there holds up all that ask for the process's memory: a copy of the file is read instead. */
static bool read_mapped(const struct inject *inject, pid_t pid, const struct proc_map *map, struct region_image *row,
			struct region_file *file)
{
	struct foreign_file found;
	if (!map->inode || foreign_is_local(pid, map))
		return image_read_loaded(inject->memory, map->low, row, file);
	if (foreign_open_mapped(&found, pid, map, true) != 0)
		return false;
	bool is_good = image_read_loaded(found.fd, 0, row, file);
	fd_close(&found.fd);
	row->base += map->low;
	row->end += map->low;
	row->bias += map->low;
	row->eh_frame_header += row->eh_frame_header ? map->low : 0;
	return is_good;
}

/* Return whether the image is the program's: the executed file or, if that is the loader, the first image of the
   loader's list. */
static bool is_program(const struct inject *inject, const struct region_image *row)
{
	const uint64_t list = inject->loader_state - STATE_OFFSET + MAP_OFFSET;
	uint64_t first = 0;
	struct link_map map;
	if (!inject->is_by_loader)
		return inject->headers >= row->base && inject->headers < row->end;
	return inject->loader_state && remote_read(inject->memory, list, &first, sizeof(first)) && first &&
	       remote_read(inject->memory, first, &map, sizeof(map)) && map.l_addr == row->bias;
}

const struct proc_map *image_find_program(const struct inject *inject, const struct proc_map *maps, int count)
{
	for (int i = 0; i < count; i++) {
		struct region_image row;
		if (maps[i].inode && maps[i].offset == 0 && read_mapped(inject, inject->pid, &maps[i], &row, NULL) &&
		    is_program(inject, &row))
			return &maps[i];
	}
	return NULL;
}

static struct inject_image *image_known(struct inject *inject, uint64_t base, uint64_t inode)
{
	for (uint32_t i = 0; i < inject->image_count; i++)
		if (inject->image[i].base == base && inject->image[i].inode == inode)
			return &inject->image[i];
	return NULL;
}

/* Return whether a mapping is executable, or followed by code of the same file: an executable mapping of it, or other
   executable memory that lies between two of its mappings without a hole. There a program has put a copy of its code,
   to have it in huge pages, for example. */
static bool has_code(const struct proc_map *maps, int count, int i)
{
	bool has_hole = false, has_copy = false;
	for (int j = i; j < count && j < i + 8; j++) {
		bool is_same = maps[j].inode == maps[i].inode && strcmp(maps[j].path, maps[i].path) == 0;
		bool is_code = maps[j].permissions[2] == 'x';
		has_hole = has_hole || (j > i && maps[j].low != maps[j - 1].high);
		if (is_same && (is_code || (has_copy && !has_hole)))
			return true;
		has_copy = has_copy || is_code;
	}
	return false;
}

/* Note the addresses of the image's code: once a byte of it is patched, all of it is private memory to the kernel. Its
   headers stay in core files. */
static void tell_code(struct region_image *row, const struct proc_map *map, const struct proc_map *end)
{
	for (const struct proc_map *at = map; at < end && at->inode == map->inode && !row->code_high; at++) {
		if (at->permissions[2] == 'x') {
			row->code_low = at->offset ? at->low : at->low + PAGE;
			row->code_high = at->high;
		}
	}
}

/* Note where the loader's state word is, if its file could not be read when the process was prepared. Without it the
   recorder would take the loader's first call, before threads have a thread pointer, for one with a list to read. */
static void loader_note(struct inject *inject, pid_t pid, const struct proc_map *map, const struct hook_image *hooks)
{
	if (!hooks->is_loader || !hooks->loader_state || inject->loader_state || map->low != proc_auxv(pid, AT_BASE))
		return;
	inject->loader_state = map->low + hooks->loader_state;
	RECORDER_WRITE(inject, loader_state, inject->loader_state);
}

static void image_add(struct inject *inject, pid_t pid, const struct proc_map *map, const struct proc_map *end,
		      uint32_t process, uint64_t ticks)
{
	struct region_image row = {.process = process, .load_ticks = ticks};
	struct region_file file = {0};
	if (!read_mapped(inject, pid, map, &row, &file)) {
		if (map->inode && !foreign_is_local(pid, map))
			inject_refuse(inject, "all functions", map->path, foreign_reason(-ETIMEDOUT));
		inject->is_doubtful = true;
		return;
	}
	snprintf(file.path, sizeof(file.path), "%.*s", (int)sizeof(file.path) - 1, map->path);
	bool is_main = is_program(inject, &row);
	if (is_main && !row.eh_frame_header && inject->tables)
		inject_fill_tables(inject, &row);
	uint32_t refused = inject->refused;
	const char *why = NULL;
	struct hook_image *hooks = map->inode ? inject->find_hooks(inject->cookie, pid, map, is_main, &why) : NULL;
	if (hooks && hooks->target_count)
		tell_code(&row, map, end);
	uint32_t index = region_add_image(inject->region, &row, &file);
	struct inject_image *larger = realloc(inject->image, (inject->image_count + 1) * sizeof(*larger));
	inject->image = larger ? larger : inject->image;
	if (index == UINT32_MAX || !larger) {
		if (hooks)
			inject_refuse(inject, "all functions", map->path,
				      larger ? "there is no room for more images" : "no memory");
		return;
	}
	inject->image[inject->image_count] = (struct inject_image){
		.base = row.base,
		.end = row.end,
		.bias = row.bias,
		.inode = map->inode,
		.index = index,
		.file = region_image(inject->region, index)->file,
		.is_seen = true,
		.has_glibc = hooks && hooks->defines_malloc && hooks->flavour == HOOK_FLAVOUR_GLIBC,
		.has_other = hooks && hooks->defines_malloc && hooks->flavour != HOOK_FLAVOUR_GLIBC};
	if (is_main)
		inject->program = index + 1;
	if (hooks && is_main && inject->is_by_loader && !inject->doors.high) {
		doors_open(inject, &row, patches_count(inject, hooks));
		RECORDER_WRITE(inject, mappings.doors,
			       ((struct recorder_mapping){inject->doors.low, inject->doors.high}));
	}
	if (hooks) {
		loader_note(inject, pid, map, hooks);
		patch_image(inject, hooks, &inject->image[inject->image_count], map->path, is_main);
	} else if (map->inode) {
		inject_refuse(inject, "all functions", map->path, why);
	}
	inject->image[inject->image_count].refused = inject->refused - refused;
	inject->is_doubtful = inject->is_doubtful || inject->image[inject->image_count].is_doubtful;
	inject->image_count++;
}

/* Return whether the memory is shared and has no file, whatever its path is: runtimes put code there that they
   compile. */
static bool is_shared_memory(const struct proc_map *map)
{
	return !strcmp(map->path, "/dev/zero (deleted)") || !strncmp(map->path, "/SYSV", 5);
}

/* Return whether an image begins with this mapping. */
static bool is_image(const struct proc_map *maps, int count, int i)
{
	bool is_vdso = strcmp(maps[i].path, "[vdso]") == 0;
	return (is_vdso || (maps[i].inode != 0 && maps[i].offset == 0 && !is_shared_memory(&maps[i]))) &&
	       has_code(maps, count, i);
}

/* Return a number for the images in the maps and their places; other images, or other places, have another number. */
static uint64_t images_number(const struct proc_map *maps, int count)
{
	uint64_t number = 0;
	for (int i = 0; i < count; i++)
		if (is_image(maps, count, i))
			number = hash_pair(number, hash_pair(maps[i].low, maps[i].inode));
	return number;
}

bool inject_is_current(const struct inject *inject)
{
	struct proc_map *maps;
	int count = proc_read_maps(inject->pid, &maps);
	uint64_t number = images_number(maps, count);
	free(maps);
	return number == inject->images_number;
}

/* Forget that some entries of an unloaded image could not be patched, and give its doors back. */
static void image_forget_entries(struct inject *inject, const struct inject_image *image)
{
	inject->refused -= image->refused;
	/* The doors of the executable are for its functions, and no more of them than these have. */
	if (image->base <= inject->doors.low && inject->doors.low < image->end) {
		inject_close_doors(inject, inject->memory);
		inject->doors.next = inject->doors.low;
	}
}

/* Drop the images that are not in the maps, and those that are to be read again. */
static void images_drop(struct inject *inject, const struct proc_map *maps, int count, uint64_t ticks)
{
	for (uint32_t i = 0; i < inject->image_count; i++)
		inject->image[i].is_seen = false;
	for (int i = 0; i < count; i++) {
		struct inject_image *known =
			is_image(maps, count, i) ? image_known(inject, maps[i].low, maps[i].inode) : NULL;
		if (known)
			known->is_seen = !inject->is_gathering || !known->is_doubtful;
	}
	for (uint32_t i = 0; count > 0 && i < inject->image_count;) {
		if (inject->image[i].is_seen) {
			i++;
			continue;
		}
		region_unload_image(inject->region, inject->image[i].index, ticks);
		patches_forget(inject, &inject->image[i]);
		if (inject->is_gathering)
			image_forget_entries(inject, &inject->image[i]);
		inject->image[i] = inject->image[--inject->image_count];
	}
}

void inject_refresh(struct inject *inject, pid_t pid, uint32_t process, uint64_t ticks)
{
	struct proc_map *maps;
	int count = proc_read_maps(pid, &maps);
	inject->images_number = images_number(maps, count);
	inject->is_doubtful = false;
	/* A new image may lie where another one lay. */
	images_drop(inject, maps, count, ticks);
	for (int i = 0; i < count; i++)
		if (is_image(maps, count, i) && !image_known(inject, maps[i].low, maps[i].inode))
			image_add(inject, pid, &maps[i], maps + count, process, ticks);
	free(maps);
}
