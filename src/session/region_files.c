/* SPDX-License-Identifier: MIT */
#include "session/region_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory that a path's file lies in. */
static void parent_of(char *directory, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/');
	snprintf(directory, size, "%.*s", slash ? (int)(slash - path) : 0, path);
}

bool region_file_is_elsewhere(const char *path, const char *directory)
{
	char parent[REGION_FILE_PATH_BYTES];
	parent_of(parent, sizeof(parent), path);
	return strcmp(parent, directory) != 0;
}

/* In a new directory of this user's alone below `place`, with a link that leads there. */
static int make_below(struct region *region, char path[REGION_FILE_PATH_BYTES], const char *place, const char *link_path, uint32_t number,
		      const struct region_config *config, struct diag *diag)
{
	char directory[REGION_FILE_PATH_BYTES - 32];
	if (!place[0] || snprintf(directory, sizeof(directory), "%s/xheap-%u-XXXXXX", place, (unsigned)geteuid()) >= (int)sizeof(directory))
		return -ENAMETOOLONG;
	if (!mkdtemp(directory))
		return -errno;
	snprintf(path, REGION_FILE_PATH_BYTES, "%s/region.%u", directory, number);
	int error = region_create(region, path, config, diag);
	if (!error && symlink(path, link_path) != 0) {
		error = diag_errno(diag, "cannot make %s", link_path);
		region_close(region);
		unlink(path);
	}
	if (error)
		rmdir(directory);
	return error;
}

/* Other file systems, those in memory first. */
static int make_elsewhere(struct region *region, char path[REGION_FILE_PATH_BYTES], const char *link_path, uint32_t number, const char *trace_path,
			  const struct region_config *config)
{
	char runtime[64], trace_directory[REGION_FILE_PATH_BYTES];
	snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)geteuid());
	parent_of(trace_directory, sizeof(trace_directory), trace_path);
	const char *const places[] = {"/dev/shm", runtime, geteuid() ? "" : "/run", "/tmp", "/var/tmp", trace_directory};
	struct diag ignored = {""};
	int error = -ENOSPC;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && error; i++)
		error = make_below(region, path, places[i], link_path, number, config, &ignored);
	return error;
}

int region_file_make(struct region *region, char path[REGION_FILE_PATH_BYTES], const char *directory, uint32_t number, const char *trace_path,
		     const struct region_config *config, struct diag *diag)
{
	char link_path[REGION_FILE_PATH_BYTES];
	snprintf(link_path, sizeof(link_path), "%s/region.%u", directory, number);
	snprintf(path, REGION_FILE_PATH_BYTES, "%s", link_path);
	int error = region_create(region, path, config, diag);
	if (error != -ENOSPC && error != -EDQUOT)
		return error;
	return make_elsewhere(region, path, link_path, number, trace_path, config) == 0 ? 0 : error;
}

void region_file_find(char path[REGION_FILE_PATH_BYTES], const char *directory, uint32_t number)
{
	char link_path[REGION_FILE_PATH_BYTES];
	snprintf(link_path, sizeof(link_path), "%s/region.%u", directory, number);
	ssize_t length = readlink(link_path, path, REGION_FILE_PATH_BYTES - 1);
	if (length > 0)
		path[length] = 0;
	else
		snprintf(path, REGION_FILE_PATH_BYTES, "%s", link_path);
}
