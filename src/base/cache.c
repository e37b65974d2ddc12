/* SPDX-License-Identifier: MIT */
#include "base/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* xheap's own part of the path is short. */
enum { HOME_BYTES = CACHE_PATH_BYTES / 2, DIRECTORY_MODE = 0700, OTHERS_WRITE = 022 };

/* A place for files of the user: its variable, or a path below the home. */
struct home {
	const char *variable, *below[2], *words;
};

static const struct home cache_home = {"XDG_CACHE_HOME", {"/.cache", NULL}, "cache"},
			 state_home = {"XDG_STATE_HOME", {"/.local", "/state"}, "state directory"};

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

/* The variable's directory itself, or those below the home. */
static int home_path(char path[CACHE_PATH_BYTES], const struct home *of, bool makes, struct diag *diag)
{
	const char *set = secure_getenv(of->variable), *home = secure_getenv("HOME");
	bool is_set = set && *set == '/';
	const char *start = is_set ? set : home && *home == '/' ? home : NULL;
	if (!start)
		return diag_fail(diag, ENOENT, "there is no %s: neither %s nor HOME is a path", of->words,
				 of->variable);
	if (strlen(start) >= HOME_BYTES - sizeof("/.local/state"))
		return diag_fail(diag, ENAMETOOLONG, "the path of the %s is too long", of->words);
	strcpy(path, start);
	int error = is_set ? directory_ensure(path, makes, diag) : 0;
	for (size_t i = 0; !is_set && !error && i < sizeof(of->below) / sizeof(of->below[0]) && of->below[i]; i++)
		error = directory_ensure(strcat(path, of->below[i]), makes, diag);
	return error;
}

/* A directory of xheap below the path, which is the user's alone. */
static int own_directory(char path[CACHE_PATH_BYTES], const char *name, bool makes, struct diag *diag)
{
	int error = directory_ensure(strcat(strcat(path, "/"), name), makes, diag);
	return error ? error : directory_check(path, diag);
}

int cache_directory(char path[CACHE_PATH_BYTES], const char *name, bool makes, struct diag *diag)
{
	*path = 0;
	int error = home_path(path, &cache_home, makes, diag);
	error = error ? error : own_directory(path, "xheap", makes, diag);
	error = error ? error : own_directory(path, name, makes, diag);
	strcat(path, "/");
	return error;
}

int state_directory(char path[CACHE_PATH_BYTES], bool makes, struct diag *diag)
{
	*path = 0;
	int error = home_path(path, &state_home, makes, diag);
	error = error ? error : own_directory(path, "xheap", makes, diag);
	strcat(path, "/");
	return error;
}
