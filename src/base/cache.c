/* SPDX-License-Identifier: MIT */
#include "base/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* xheap's own part of the path is short. */
enum { HOME_BYTES = CACHE_PATH_BYTES / 2, DIRECTORY_MODE = 0700, OTHERS_WRITE = 022 };

static int home_path(char path[CACHE_PATH_BYTES], struct diag *diag)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	int length = cache && *cache == '/' ? snprintf(path, HOME_BYTES, "%s", cache)
		     : home && *home == '/' ? snprintf(path, HOME_BYTES, "%s/.cache", home)
					    : 0;
	if (length <= 0)
		return diag_fail(diag, ENOENT, "there is no cache: neither XDG_CACHE_HOME nor HOME is a path");
	return length < HOME_BYTES ? 0 : diag_fail(diag, ENAMETOOLONG, "the path of the cache is too long");
}

/* Make a directory, unless its parent belongs to a user other than this one and root: `sudo` keeps HOME, and root's
   directories in a user's home would lock the user out. */
static int directory_make(const char *path, struct diag *diag)
{
	char parent[CACHE_PATH_BYTES];
	struct stat status;
	strcpy(parent, path);
	*strrchr(parent, '/') = 0;
	if (stat(*parent ? parent : "/", &status))
		return diag_errno(diag, "cannot write to %s", parent);
	if (status.st_uid != geteuid() && status.st_uid != 0)
		return diag_fail(diag, EPERM, "%s belongs to another user", parent);
	return mkdir(path, DIRECTORY_MODE) && errno != EEXIST ? diag_errno(diag, "cannot make %s", path) : 0;
}

/* A link must be the user's own, too: another user could lead it elsewhere. */
static int directory_check(const char *path, struct diag *diag)
{
	struct stat link, status;
	if (lstat(path, &link) || stat(path, &status))
		return diag_errno(diag, "cannot read %s", path);
	if (!S_ISDIR(status.st_mode))
		return diag_fail(diag, ENOTDIR, "%s is no directory", path);
	if (link.st_uid != geteuid() || status.st_uid != geteuid())
		return diag_fail(diag, EPERM, "%s belongs to another user", path);
	if (status.st_mode & OTHERS_WRITE)
		return diag_fail(diag, EPERM, "other users may write to %s", path);
	return 0;
}

static int directory_ensure(const char *path, bool makes, struct diag *diag)
{
	struct stat status;
	return !makes || !stat(path, &status) ? 0 : directory_make(path, diag);
}

int cache_directory(char path[CACHE_PATH_BYTES], const char *name, bool makes, struct diag *diag)
{
	const char *const parts[] = {"xheap", name};
	int error = home_path(path, diag);
	error = error ? error : directory_ensure(path, makes, diag);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !error; i++) {
		strcat(strcat(path, "/"), parts[i]);
		error = directory_ensure(path, makes, diag);
		error = error ? error : directory_check(path, diag);
	}
	strcat(path, "/");
	return error;
}
