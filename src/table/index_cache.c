/* SPDX-License-Identifier: MIT */
#include "table/index_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "table/index_file.h"
#include "trace/reader.h"
#include "trace/trace.h"

#define DIRECTORY "indexes"
#define SUFFIX ".index"
enum { NAME_DIGITS = 16, DISK_PART = 20 /* one in twenty: 5 % */ };
static const uint64_t limit_most_bytes = (uint64_t)2 << 30;

/* ---- one trace ---- */

static void name_write(char name[INDEX_CACHE_NAME_BYTES], const struct trace *trace)
{
	snprintf(name, INDEX_CACHE_NAME_BYTES, "%0*" PRIx64 SUFFIX, NAME_DIGITS, trace_dictionary(trace)->contents);
}

int index_cache_directory(char path[CACHE_PATH_BYTES], struct diag *diag)
{
	return cache_directory(path, DIRECTORY, false, diag);
}

void index_cache_paths(char *paths[INDEX_CACHE_PLACES], const struct trace *trace, const char *trace_path)
{
	struct diag ignored = {""};
	char directory[CACHE_PATH_BYTES], name[INDEX_CACHE_NAME_BYTES], *real = realpath(trace_path, NULL);
	paths[0] = paths[1] = NULL;
	name_write(name, trace);
	if (!cache_directory(directory, DIRECTORY, false, &ignored) && asprintf(&paths[0], "%s%s", directory, name) < 0)
		memory_exhausted(sizeof(directory));
	if (real && asprintf(&paths[1], "%s" SUFFIX, real) < 0)
		memory_exhausted(strlen(real));
	free(real);
}

int index_cache_read(struct heap_table **out, const struct trace *trace, const char *trace_path, char **path)
{
	char *paths[INDEX_CACHE_PLACES];
	int error = -ENOENT;
	index_cache_paths(paths, trace, trace_path);
	*out = NULL;
	*path = NULL;
	for (unsigned i = 0; i < INDEX_CACHE_PLACES; i++) {
		if (error && paths[i])
			error = heap_index_read(out, trace, trace_path, (const char *const *)&paths[i], 1);
		if (!error && !*path)
			*path = paths[i];
		else
			free(paths[i]);
	}
	return error;
}

int index_cache_begin(struct diag *diag)
{
	char directory[CACHE_PATH_BYTES];
	int error = cache_directory(directory, DIRECTORY, true, diag);
	return error ? error : heap_index_begin(directory, diag);
}

/* ---- all of them ---- */

static bool is_index_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == NAME_DIGITS && !strcmp(name + NAME_DIGITS, SUFFIX);
}

static int entry_compare(const void *a, const void *b)
{
	const struct index_cache_entry *left = a, *right = b;
	int by_time = (left->used_ns > right->used_ns) - (left->used_ns < right->used_ns);
	return by_time ? by_time : strcmp(left->name, right->name);
}

static void entry_add(struct index_cache_list *list, const char *name, const struct stat *status)
{
	memory_grow(list->entries, list->count, list->capacity);
	struct index_cache_entry *entry = &list->entries[list->count++];
	strcpy(entry->name, name);
	entry->bytes = (uint64_t)status->st_size;
	entry->used_ns = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

int index_cache_list(struct index_cache_list *list, struct diag *diag)
{
	*list = (struct index_cache_list){.count = 0};
	int error = cache_directory(list->directory, DIRECTORY, false, diag);
	if (error)
		return error;
	DIR *directory = opendir(list->directory);
	if (!directory)
		return diag_errno(diag, "cannot read %s", list->directory);
	const struct dirent *found;
	struct stat status;
	while ((found = readdir(directory)))
		if (is_index_name(found->d_name) &&
		    !fstatat(dirfd(directory), found->d_name, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode))
			entry_add(list, found->d_name, &status);
	closedir(directory);
	if (list->count)
		qsort(list->entries, list->count, sizeof(*list->entries), entry_compare);
	return 0;
}

void index_cache_list_fini(struct index_cache_list *list)
{
	free(list->entries);
	list->entries = NULL;
	list->count = list->capacity = 0;
}

bool index_cache_is_index(const char *path, char *origin)
{
	static const char family[] = {'X', 'H', 'E', 'A', 'P', 'I', 'X'};
	char magic[HEAP_INDEX_MAGIC_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is_index = fd >= 0 && file_read(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
			!memcmp(magic, family, sizeof(family));
	*origin = 0;
	if (is_index && memcmp(magic, HEAP_INDEX_MAGIC_OLDEST, sizeof(magic)) != 0 &&
	    file_read(fd, origin, HEAP_INDEX_ORIGIN_BYTES, HEAP_INDEX_ORIGIN_OFFSET) != HEAP_INDEX_ORIGIN_BYTES)
		*origin = 0;
	origin[HEAP_INDEX_ORIGIN_BYTES - 1] = 0;
	if (fd >= 0)
		close(fd);
	return is_index;
}

/* ---- the limit ---- */

uint64_t index_cache_limit_bytes(const char *directory)
{
	const char *word = secure_getenv("XHEAP_INDEX_LIMIT");
	struct statvfs disk;
	uint64_t limit = limit_most_bytes;
	if (word && text_parse_size(word, &limit))
		return limit;
	if (!statvfs(directory, &disk) && disk.f_blocks * disk.f_frsize / DISK_PART < limit)
		limit = disk.f_blocks * disk.f_frsize / DISK_PART;
	return limit;
}

/* Several commands may do this at the same time: they remove the same ones. */
static void limit_keep(struct index_cache_made *made, const char *kept_name)
{
	struct diag ignored = {""};
	struct index_cache_list list;
	uint64_t bytes = 0;
	char path[CACHE_PATH_BYTES + INDEX_CACHE_NAME_BYTES];
	if (index_cache_list(&list, &ignored))
		list.count = 0;
	for (size_t i = 0; i < list.count; i++)
		bytes += list.entries[i].bytes;
	for (size_t i = 0; i < list.count && bytes > made->limit_bytes; i++) {
		if (!strcmp(list.entries[i].name, kept_name))
			continue;
		snprintf(path, sizeof(path), "%s%s", made->directory, list.entries[i].name);
		if (unlink(path))
			continue;
		bytes -= list.entries[i].bytes;
		made->removed_count++;
		made->removed_bytes += list.entries[i].bytes;
	}
	index_cache_list_fini(&list);
}

int index_cache_write(const struct heap_table *table, const char *trace_path, struct index_cache_made *made,
		      struct diag *diag)
{
	char name[INDEX_CACHE_NAME_BYTES], path[CACHE_PATH_BYTES + INDEX_CACHE_NAME_BYTES];
	struct stat status;
	*made = (struct index_cache_made){.bytes = 0};
	int error = cache_directory(made->directory, DIRECTORY, true, diag);
	if (error)
		return error;
	name_write(name, table->trace);
	snprintf(path, sizeof(path), "%s%s", made->directory, name);
	error = heap_index_write(table, trace_path, path, diag);
	if (error)
		return error;
	made->bytes = fstat(table->groups.fd, &status) ? 0 : (uint64_t)status.st_size;
	made->limit_bytes = index_cache_limit_bytes(made->directory);
	limit_keep(made, name);
	return 0;
}
