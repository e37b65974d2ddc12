/* SPDX-License-Identifier: MIT */
#include "inject/unwinding.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/remote.h"
#include "inject/tables.h"

enum { COPY_BYTES_MAX = 256 << 20, HEADER_BYTES_MIN = 12, ALIGN = 16 };

static bool is_known(const struct unwinding *unwinding, uint64_t base)
{
	for (uint32_t i = 0; i < unwinding->count; i++)
		if (unwinding->images[i].base == base)
			return true;
	return false;
}

/* Return the end of the mappings of one file from map `first` on. */
static uint64_t image_end(const struct proc_map *maps, int count, int first)
{
	uint64_t end = maps[first].high;
	for (int i = first + 1; i < count && (maps[i].inode == maps[first].inode || !maps[i].inode) &&
				maps[i].offset >= maps[first].offset;
	     i++)
		if (maps[i].inode && maps[i].device_major == maps[first].device_major &&
		    maps[i].device_minor == maps[first].device_minor)
			end = maps[i].high;
	return end;
}

void unwinding_take_images(struct unwinding *unwinding, const struct proc_map *maps, int count)
{
	for (int i = 0; i < count; i++) {
		bool is_vdso = strcmp(maps[i].path, "[vdso]") == 0;
		if ((!is_vdso && (!maps[i].inode || maps[i].offset)) || is_known(unwinding, maps[i].low))
			continue;
		struct unwinding_image *larger = realloc(unwinding->images, (unwinding->count + 1) * sizeof(*larger));
		if (!larger)
			return;
		unwinding->images = larger;
		unwinding->images[unwinding->count++] = (struct unwinding_image){
			.base = maps[i].low, .end = is_vdso ? maps[i].high : image_end(maps, count, i)};
	}
}

static struct unwinding_image *image_of(const struct unwinding *unwinding, uint64_t pc)
{
	for (uint32_t i = 0; i < unwinding->count; i++)
		if (pc >= unwinding->images[i].base && pc < unwinding->images[i].end)
			return &unwinding->images[i];
	return NULL;
}

/* Every pointer in the tables is relative to its own address. So a row found here for a shifted counter is the row of
   the counter in the process. */
bool unwinding_row(struct unwinding *unwinding, uint64_t pc, row_bits *row)
{
	struct unwinding_image *image = image_of(unwinding, pc);
	if (image && !image->is_read)
		image->is_wanted = unwinding->is_wanting = true;
	if (!image || !image->copy)
		return false;
	*row = unwind_row(&image->tables, pc + image->shift);
	return row_kind(*row) != ROW_POINTERS;
}

/* Copy [low, high) of the process, with room for `more` bytes after it. */
static bool image_copy(const struct unwinding *unwinding, struct unwinding_image *image, uint64_t low, uint64_t high,
		       uint64_t more)
{
	if (low >= high || high - low > COPY_BYTES_MAX || more > COPY_BYTES_MAX)
		return false;
	image->copy = malloc(high - low + more);
	if (!image->copy || !remote_read(unwinding->memory, low, image->copy, high - low)) {
		free(image->copy);
		image->copy = NULL;
		return false;
	}
	image->shift = (uint64_t)image->copy - low;
	return true;
}

/* Return the address of .eh_frame by its table's header, in the usual encoding only; 0: another encoding. */
static uint64_t frames_begin(const struct unwinding *unwinding, uint64_t header)
{
	enum { PCREL_SDATA4 = 0x1b };
	struct {
		uint8_t version, frames, count, table;
		int32_t offset;
	} head;
	if (!remote_read(unwinding->memory, header, &head, sizeof(head)) || head.frames != PCREL_SDATA4)
		return 0;
	return header + 4 + (uint64_t)(int64_t)head.offset;
}

static void read_with_header(const struct unwinding *unwinding, struct unwinding_image *image, uint64_t header,
			     uint64_t bytes, uint64_t end)
{
	uint64_t frames = frames_begin(unwinding, header), low = frames && frames < header ? frames : header;
	if (bytes < HEADER_BYTES_MIN || !image_copy(unwinding, image, low, end, 0))
		return;
	image->tables = (struct unwind_tables){low + image->shift, end + image->shift, header + image->shift, bytes};
}

/* Make a search table for an image whose linker made none. The file's sections say where the frames are. */
static void read_without_header(const struct unwinding *unwinding, struct unwinding_image *image, uint64_t bias)
{
	uint64_t size = 0;
	int fd = tables_open(unwinding->pid, image->base);
	uint64_t frames = fd >= 0 ? tables_find(fd, &size) : 0;
	if (fd >= 0)
		close(fd);
	uint64_t low = frames + bias, table_at = (low + size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	if (!frames || low < image->base || low >= image->end || size > image->end - low ||
	    !image_copy(unwinding, image, low, low + size, tables_bound(size) + ALIGN))
		return;
	size_t table_size = 0;
	void *table = tables_make(image->copy, size, low, table_at, &table_size);
	if (table) {
		memcpy(image->copy + (table_at - low), table, table_size);
		image->tables = (struct unwind_tables){low + image->shift, low + size + image->shift,
						       table_at + image->shift, table_size};
	} else {
		free(image->copy);
		image->copy = NULL;
	}
	free(table);
}

static void image_read(const struct unwinding *unwinding, struct unwinding_image *image)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[REMOTE_SEGMENT_MAX];
	image->is_read = true;
	if (!remote_read_segments(unwinding->memory, image->base, &header, segments))
		return;
	uint64_t first = UINT64_MAX, table = 0, table_bytes = 0;
	for (int i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr < first)
			first = segments[i].p_vaddr;
		if (segments[i].p_type == PT_GNU_EH_FRAME) {
			table = segments[i].p_vaddr;
			table_bytes = segments[i].p_memsz;
		}
	}
	uint64_t bias = image->base - (first & ~(uint64_t)4095);
	if (!table)
		read_without_header(unwinding, image, bias);
	for (int i = 0; i < header.e_phnum && table && !image->copy; i++) {
		uint64_t low = segments[i].p_vaddr, bytes = segments[i].p_filesz;
		if (segments[i].p_type == PT_LOAD && table >= low && table - low < bytes &&
		    table_bytes <= bytes - (table - low))
			read_with_header(unwinding, image, table + bias, table_bytes, low + bytes + bias);
	}
}

void unwinding_read_wanted(struct unwinding *unwinding)
{
	for (uint32_t i = 0; i < unwinding->count && unwinding->is_wanting; i++)
		if (!unwinding->images[i].is_read && unwinding->images[i].is_wanted)
			image_read(unwinding, &unwinding->images[i]);
	unwinding->is_wanting = false;
}

void unwinding_fini(struct unwinding *unwinding)
{
	for (uint32_t i = 0; i < unwinding->count; i++)
		free(unwinding->images[i].copy);
	free(unwinding->images);
	*unwinding = (struct unwinding){.memory = -1};
}
