/* SPDX-License-Identifier: MIT */
/*
 * The lists of files that dpkg keeps, one of each package, are searched once for all paths. dpkg-query -S answers the
 * same from the same files, and takes ten times as long: it makes a tree of all names first.
 */
#include "symbols/package.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#define LISTS "/var/lib/dpkg/info"
#define LIST_END ".list"
#define USR "/usr"

/* A path that a list may have, and which of the caller's files it is. */
struct wanted_path {
	const char *text;
	size_t length, place;
};

struct package_search {
	struct wanted_path wanted[2 * PACKAGE_PATHS_MAX];
	unsigned wanted_count;
	uint64_t lengths; /* bit of each length, less multiples of 64 */
	char (*packages)[PACKAGE_NAME_BYTES];
	char *text; /* of a list */
	size_t room;
};

static void path_want(struct package_search *search, const char *path, size_t place)
{
	struct wanted_path *wanted = &search->wanted[search->wanted_count++];
	*wanted = (struct wanted_path){path, strlen(path), place};
	search->lengths |= UINT64_C(1) << wanted->length % 64;
}

/* Several packages may have a file: the first one by name counts, whatever the order of the directory is. */
static void package_note(char *package, const char *name, size_t length)
{
	char found[PACKAGE_NAME_BYTES];
	if (!length || length >= sizeof(found))
		return;
	memcpy(found, name, length);
	found[length] = 0;
	if (!*package || strcmp(found, package) < 0)
		memcpy(package, found, length + 1);
}

static void lines_search(struct package_search *search, size_t size, const char *name, size_t name_length)
{
	const char *end = search->text + size, *next;
	for (const char *line = search->text; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		size_t length = (size_t)(next - line);
		if (!(search->lengths >> length % 64 & 1))
			continue;
		for (unsigned i = 0; i < search->wanted_count; i++)
			if (search->wanted[i].length == length && !memcmp(line, search->wanted[i].text, length))
				package_note(search->packages[search->wanted[i].place], name, name_length);
	}
}

/* Search a list, "PACKAGE.list" or "PACKAGE:ARCHITECTURE.list". One that cannot be read has nothing. */
static void list_search(struct package_search *search, int directory, const char *name)
{
	size_t length = strlen(name), end = sizeof(LIST_END) - 1;
	struct stat status;
	if (length <= end || strcmp(name + length - end, LIST_END) != 0)
		return;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
		if ((size_t)status.st_size > search->room) {
			search->room = memory_capacity(search->room, (size_t)status.st_size);
			search->text = memory_resize(search->text, search->room, 1);
		}
		size_t colon = strcspn(name, ":");
		lines_search(search, file_read(fd, search->text, (size_t)status.st_size, 0), name,
			     colon < length - end ? colon : length - end);
	}
	close(fd);
}

void symbols_packages(const char *const *paths, size_t count, char (*packages)[PACKAGE_NAME_BYTES])
{
	struct package_search search = {.packages = packages};
	for (size_t i = 0; i < count; i++) {
		packages[i][0] = 0;
		if (paths[i][0] != '/')
			continue;
		path_want(&search, paths[i], i);
		/* Packages may have a file where it lay before /bin and /lib went to /usr. */
		if (!strncmp(paths[i], USR "/", sizeof(USR)))
			path_want(&search, paths[i] + strlen(USR), i);
	}
	DIR *lists = search.wanted_count ? opendir(LISTS) : NULL;
	for (struct dirent *entry; lists && (entry = readdir(lists));)
		list_search(&search, dirfd(lists), entry->d_name);
	if (lists)
		closedir(lists);
	free(search.text);
}
