/* SPDX-License-Identifier: MIT */
#include "session/directory/region_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/limits.h"
#include "session/directory/places.h"

#define SHARED "/dev/shm"

/* Get the directory of a path's file. */
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

/* Make a new directory, for this user alone, below `place`. Write its path and return a descriptor, or a negative
   errno. */
static int directory_below(char *directory, size_t size, const char *place)
{
	if (!place[0] ||
	    snprintf(directory, size, "%s/xheap-region-%u-XXXXXX", place, (unsigned)geteuid()) >= (int)size)
		return -ENAMETOOLONG;
	if (!mkdtemp(directory))
		return -errno;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (place_is_own(fd, geteuid()))
		return fd;
	close(fd);
	return -EPERM;
}

/* Make the region in such a directory, and a link to it. */
static int make_below(struct region *region, char path[REGION_FILE_PATH_BYTES], const char *place,
		      const struct session_directory *session, const char *name, const struct region_config *config,
		      struct diag *diag)
{
	char directory[REGION_FILE_PATH_BYTES - 32];
	int fd = directory_below(directory, sizeof(directory), place);
	if (fd < 0)
		return fd;
	snprintf(path, REGION_FILE_PATH_BYTES, "%s/%s", directory, name);
	int error = region_create(region, fd, name, path, config, diag);
	if (!error && symlinkat(path, session->fd, name) != 0) {
		error = diag_errno(diag, "cannot make %s/%s", session->path, name);
		region_close(region);
		unlinkat(fd, name, 0);
	}
	close(fd);
	if (error)
		rmdir(directory);
	return error;
}

/* Try other file systems, those in memory first. */
static int make_elsewhere(struct region *region, char path[REGION_FILE_PATH_BYTES],
			  const struct session_directory *session, const char *name, const char *trace_path,
			  const struct region_config *config)
{
	char runtime[64], trace_directory[REGION_FILE_PATH_BYTES];
	snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)geteuid());
	parent_of(trace_directory, sizeof(trace_directory), trace_path);
	const char *const places[] = {SHARED, runtime, geteuid() ? "" : "/run", "/tmp", "/var/tmp", trace_directory};
	struct diag ignored = {""};
	int error = -ENOSPC;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && error; i++)
		error = make_below(region, path, places[i], session, name, config, &ignored);
	return error;
}

static bool shared_has_room(void)
{
	int fd = open(SHARED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool has_room = fd >= 0 && place_has_room(fd);
	if (fd >= 0)
		close(fd);
	return has_room;
}

int region_file_make(struct region *region, char path[REGION_FILE_PATH_BYTES],
		     const struct session_directory *directory, uint32_t number, const char *trace_path,
		     const struct region_config *config, struct diag *diag)
{
	char name[32];
	snprintf(name, sizeof(name), "region.%u", number);
	bool is_shared = !place_has_room(directory->fd) && shared_has_room();
	int error = is_shared ? make_below(region, path, SHARED, directory, name, config, &(struct diag){""}) : -ENOSPC;
	if (error) {
		snprintf(path, REGION_FILE_PATH_BYTES, "%s/%s", directory->path, name);
		error = region_create(region, directory->fd, name, path, config, diag);
	}
	/* The last descriptors are reserved: without them the logger could neither accept controllers nor notice
	   ends. */
	if (!error && limits_is_last_descriptor(region->fd)) {
		region_close(region);
		session_file_remove(directory, name);
		return diag_fail(diag, EMFILE, "cannot open %s: %s", path, strerror(EMFILE));
	}
	if ((error == -ENOSPC || error == -EDQUOT) &&
	    make_elsewhere(region, path, directory, name, trace_path, config) == 0)
		error = 0;
	return error;
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
