/* SPDX-License-Identifier: MIT */
#include "inject/tables.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/order.h"
#include "hook/elf_file.h"
#include "inject/foreign_file.h"
#include "os/proc.h"

enum { HEAD_BYTES = 16, FDE_BYTES_MIN = 16, FILE_BYTES_MAX = 512 << 20 };
/* Encodings of pointers in .eh_frame (DW_EH_PE_*). */
enum { PE_ABSPTR = 0x00, PE_UDATA4 = 0x03, PE_PCREL = 0x10, PE_DATAREL_SDATA8 = 0x3c };

struct table_row {
	int64_t location, description;
};

int tables_open(pid_t pid, uint64_t base)
{
	struct proc_map *maps = NULL;
	struct foreign_file file = {.fd = -1};
	int count = proc_read_maps(pid, &maps);
	for (int i = 0; i < count && file.fd < 0; i++)
		if (maps[i].low == base)
			foreign_open_mapped(&file, pid, &maps[i], false);
	free(maps);
	return file.fd;
}

/* Return a copy of the file, and its size; MAP_FAILED: there is none. The file itself is not mapped: its owner may cut
   it at any time, and a look at what is gone would end this process. */
static void *file_copy(int fd, size_t *size)
{
	struct stat status;
	if (fstat(fd, &status) != 0 || status.st_size <= 0 || status.st_size > FILE_BYTES_MAX)
		return MAP_FAILED;
	*size = (size_t)status.st_size;
	uint8_t *data = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return data;
	size_t done = 0;
	ssize_t got;
	while ((got = pread(fd, data + done, *size - done, (off_t)done)) > 0)
		done += (size_t)got;
	return data;
}

uint64_t tables_find(int fd, uint64_t *size)
{
	struct diag diag = {""};
	struct elf elf;
	Elf64_Shdr section;
	size_t bytes;
	uint64_t address = 0;
	void *data = file_copy(fd, &bytes);
	if (data == MAP_FAILED)
		return 0;
	if (!elf_open(&elf, data, bytes, &diag) && elf_section(&elf, ".eh_frame", &section)) {
		address = section.sh_addr;
		*size = section.sh_size;
	}
	munmap(data, bytes);
	return address;
}

size_t tables_bound(size_t size)
{
	return HEAD_BYTES + size / FDE_BYTES_MIN * sizeof(struct table_row);
}

/* Return the encoding of a common entry's pointers, which follows 'R' in its augmentation. -1: not understood. */
static int pointer_encoding(const uint8_t *entry, const uint8_t *end)
{
	const uint8_t *at = entry + 9, *augmentation = at;
	while (at < end && *at)
		at++;
	at++;
	if (at >= end)
		return -1;
	if (augmentation[0] == 0)
		return PE_ABSPTR;
	if (augmentation[0] != 'z')
		return -1;
	/* Code alignment, data alignment, return register, augmentation size: four numbers to pass over. */
	for (int i = 0; i < 4; i++) {
		while (at < end && (*at & 128))
			at++;
		at++;
	}
	for (const uint8_t *letter = augmentation + 1; at < end && *letter; letter++) {
		switch (*letter) {
		case 'R':
			return *at;
		case 'L':
			at++;
			break;
		case 'P':
			at += 1 + ((*at & 7) == PE_ABSPTR || (*at & 7) == 4 ? 8 : 4);
			break;
		default:
			break;
		}
	}
	return PE_ABSPTR;
}

static bool initial_location(const uint8_t *field, const uint8_t *end, int encoding, uint64_t at, uint64_t *location)
{
	bool is_wide = (encoding & 7) == PE_ABSPTR || (encoding & 7) == 4;
	if (encoding < 0 || end - field < (is_wide ? 8 : 4) || (encoding & ~(PE_PCREL | 0x0f)))
		return false;
	if (is_wide) {
		memcpy(location, field, 8);
	} else {
		int32_t narrow;
		memcpy(&narrow, field, 4);
		*location = (encoding & 0x0f) == PE_UDATA4 ? (uint64_t)(uint32_t)narrow : (uint64_t)(int64_t)narrow;
	}
	if (encoding & PE_PCREL)
		*location += at;
	return true;
}

COMPARE_BY(compare_rows, struct table_row, location)

void *tables_make(const uint8_t *frames, size_t size, uint64_t at, uint64_t table_at, size_t *table_size)
{
	uint8_t *table = malloc(tables_bound(size));
	struct table_row *rows = table ? (struct table_row *)(table + HEAD_BYTES) : NULL;
	uint32_t count = 0;
	for (size_t i = 0; table && i + 8 <= size;) {
		uint32_t length, back;
		memcpy(&length, frames + i, 4);
		memcpy(&back, frames + i + 4, 4);
		if (length == 0 || length == 0xffffffff || length > size - i - 4 || length < 4)
			break;
		uint64_t location;
		/* A description points back to its common entry; a common entry has 0 there. */
		if (back != 0 && back <= i + 4 && i + 4 - back + 16 < size && length + 4 >= FDE_BYTES_MIN &&
		    initial_location(frames + i + 8, frames + size,
				     pointer_encoding(frames + i + 4 - back, frames + size), at + i + 8, &location))
			rows[count++] =
				(struct table_row){(int64_t)(location - table_at), (int64_t)(at + i - table_at)};
		i += length + 4;
	}
	if (count == 0) {
		free(table);
		return NULL;
	}
	/* Wide, so that the table may lie anywhere. */
	static const uint8_t head[4] = {1, PE_ABSPTR, PE_UDATA4, PE_DATAREL_SDATA8};
	memcpy(table, head, sizeof(head));
	memcpy(table + 4, &at, sizeof(at));
	memcpy(table + 12, &count, sizeof(count));
	qsort(rows, count, sizeof(*rows), compare_rows);
	*table_size = HEAD_BYTES + count * sizeof(*rows);
	return table;
}
