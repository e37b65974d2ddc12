/* SPDX-License-Identifier: MIT */
#include "os/mount_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_octal(const char *digits)
{
	return strspn(digits, "01234567") >= 3;
}

void mount_text_decode(char *text)
{
	char *to = text;
	for (const char *at = text; *at; to++) {
		if (at[0] == '\\' && is_octal(at + 1)) {
			*to = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = 0;
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

static size_t count_lines(const char *text)
{
	size_t count = 0;
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

int mount_table_make(struct mount_table *table, char *text)
{
	*table = (struct mount_table){.text = text};
	table->rows = calloc(count_lines(text) + 1, sizeof(*table->rows));
	if (!table->rows) {
		mount_table_fini(table);
		return -ENOMEM;
	}
	for (char *rest = text, *line = strsep(&rest, "\n"); rest; line = strsep(&rest, "\n"))
		table->count += take_line(line, &table->rows[table->count]);
	return 0;
}

/* Return the file's text, or NULL and the error. */
static char *read_text(int fd, size_t most, int *error)
{
	size_t size = 0, capacity = 0;
	char *text = NULL;
	ssize_t got = 1;
	while (got > 0 && size < most) {
		capacity = capacity - size < 4096 ? 2 * capacity + (16 << 10) : capacity;
		char *larger = realloc(text, capacity);
		if (!larger)
			break;
		text = larger;
		size_t room = capacity - size - 1;
		got = pread(fd, text + size, room < most - size ? room : most - size, (off_t)size);
		size += got > 0 ? (size_t)got : 0;
	}
	*error = got < 0 ? -errno : -ENOMEM;
	if (got != 0 && size < most) {
		free(text);
		return NULL;
	}
	text[size] = 0;
	return text;
}

int mount_table_read_file(struct mount_table *table, int fd, size_t most)
{
	int error;
	char *text = read_text(fd, most, &error);
	*table = (struct mount_table){.text = NULL};
	return text ? mount_table_make(table, text) : error;
}

int mount_table_read(struct mount_table *table, pid_t pid, size_t most)
{
	char path[64];
	snprintf(path, sizeof(path), pid ? "/proc/%d/mountinfo" : "/proc/self/mountinfo", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	*table = (struct mount_table){.text = NULL};
	if (fd < 0)
		return -errno;
	int result = mount_table_read_file(table, fd, most);
	close(fd);
	return result;
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

uint32_t mount_id_of(int fd)
{
	char path[64], text[512];
	unsigned id = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	int info = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = info < 0 ? 0 : read(info, text, sizeof(text) - 1);
	if (info >= 0)
		close(info);
	text[got > 0 ? got : 0] = 0;
	const char *found = strstr(text, "mnt_id:");
	return found && sscanf(found, "mnt_id: %u", &id) == 1 ? id : 0;
}

/* Return whether the path has no "//", "." or "..". */
static bool is_plain(const char *path)
{
	for (const char *at = path; (at = strchr(at, '/')); at++) {
		size_t length = strcspn(at + 1, "/");
		if (at[1] == '/' || (length && length <= 2 && strspn(at + 1, ".") >= length))
			return false;
	}
	return path[0] == '/';
}

static bool is_above(const struct mount *mount, const char *path)
{
	size_t length = strlen(mount->place);
	return length && strncmp(mount->place, path, length) == 0 &&
	       (length == 1 || path[length] == '/' || !path[length]);
}

/* Return whether the mount lies on another one; NULL: on none of the table. */
static bool lies_on(const struct mount_table *table, const struct mount *mount, const struct mount *lower)
{
	if (lower)
		return mount->parent == lower->id && mount->id != lower->id;
	return mount->parent == mount->id || !mount_table_find(table, mount->parent);
}

const struct mount *mount_table_above(const struct mount_table *table, const char *path)
{
	const struct mount *found = NULL;
	if (!is_plain(path))
		return NULL;
	/* Each step leaves a mount for one on it. Who mounts above it hides what lies deeper. */
	for (size_t steps = 0; steps < table->count; steps++) {
		const struct mount *next = NULL;
		for (size_t i = 0; i < table->count; i++) {
			const struct mount *mount = &table->rows[i];
			if (is_above(mount, path) && lies_on(table, mount, found) &&
			    (!next || strlen(mount->place) < strlen(next->place)))
				next = mount;
		}
		if (!next)
			break;
		found = next;
	}
	return found;
}
