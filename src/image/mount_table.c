/* SPDX-License-Identifier: MIT */
#include "image/mount_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

void mount_text_decode(char *text)
{
	char *to = text;
	for (const char *at = text; *at; to++) {
		unsigned value;
		if (at[0] == '\\' && sscanf(at + 1, "%3o", &value) == 1) {
			*to = (char)value;
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = 0;
}

static char *read_text(int fd, size_t most)
{
	size_t size = 0, capacity = 0;
	char *text = NULL;
	ssize_t got = 1;
	while (got > 0 && size < most) {
		if (capacity - size < 4096) {
			capacity = capacity ? 2 * capacity : 16 << 10;
			text = memory_resize(text, capacity, 1);
		}
		got = read(fd, text + size, capacity - size - 1);
		size += got > 0 ? (size_t)got : 0;
	}
	text[size] = 0;
	return text;
}

/* ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [TAG...] - TYPE SOURCE OPTIONS */
static bool take_line(char *line, struct mount *mount)
{
	unsigned major, minor;
	char *rest = line, *place = NULL, *type, *options;
	if (sscanf(line, "%u %u %u:%u", &mount->id, &mount->parent, &major, &minor) != 4)
		return false;
	mount->device = mount_device(major, minor);
	for (int i = 0; i < 5 && rest; i++)
		place = strsep(&rest, " ");
	char *behind = rest ? strstr(rest, " - ") : NULL;
	if (!behind)
		return false;
	behind += strlen(" - ");
	type = strsep(&behind, " ");
	strsep(&behind, " ");
	options = behind ? behind : rest + strlen(rest);
	mount_text_decode(place);
	*mount = (struct mount){mount->id, mount->parent, mount->device, place, type, options};
	return true;
}

int mount_table_read(struct mount_table *table, pid_t pid, size_t most)
{
	char path[64];
	snprintf(path, sizeof(path), pid ? "/proc/%d/mountinfo" : "/proc/self/mountinfo", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	table->text = read_text(fd, most);
	close(fd);
	for (char *rest = table->text, *line; (line = strsep(&rest, "\n"));) {
		struct mount mount;
		if (!take_line(line, &mount))
			continue;
		memory_grow(table->rows, table->count, table->capacity);
		table->rows[table->count++] = mount;
	}
	return 0;
}

void mount_table_fini(struct mount_table *table)
{
	free(table->rows);
	free(table->text);
	*table = (struct mount_table){.count = 0};
}

const struct mount *mount_table_find(const struct mount_table *table, uint32_t id)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].id == id)
			return &table->rows[i];
	return NULL;
}
