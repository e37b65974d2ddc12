/* SPDX-License-Identifier: MIT */
#include "base/output_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

/* A walk along a path, one name after the other. */
struct path_walk {
	struct output_place *place;
	const char *path;
	struct diag *diag;
	char rest[2 * PATH_MAX]; /* what is still to walk */
	int links;
	bool follows_last;
	bool has_stranger; /* a link of another user was followed, who must own the directory at the end */
	uid_t stranger;
};

static int refuse(const struct path_walk *walk, int error, const char *why)
{
	return diag_fail(walk->diag, error, "cannot write %s: %s", walk->path, why);
}

static int fail(const struct path_walk *walk)
{
	return refuse(walk, errno, strerror(errno));
}

static bool enter(struct path_walk *walk, int at, const char *name)
{
	int directory = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return false;
	if (walk->place->directory >= 0)
		close(walk->place->directory);
	walk->place->directory = directory;
	return true;
}

/* Return whether the link is one of procfs that leads to an open file, and not to what its text names. */
static bool is_open_file(const struct path_walk *walk, const char *text)
{
	struct statfs system;
	struct stat file, named;
	return fstatfs(walk->place->directory, &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
	       fstatat(walk->place->directory, walk->place->name, &file, 0) == 0 &&
	       (text[0] != '/' || stat(text, &named) != 0 || named.st_ino != file.st_ino ||
		named.st_dev != file.st_dev);
}

/* Put the link's text before the rest. */
static int follow(struct path_walk *walk, const struct stat *link, bool is_last)
{
	struct output_place *place = walk->place;
	char text[PATH_MAX], rest[sizeof(walk->rest)];
	ssize_t size = readlinkat(place->directory, place->name, text, sizeof(text) - 1);
	if (size < 0)
		return fail(walk);
	text[size] = 0;
	if (is_last && !walk->follows_last)
		return refuse(walk, ELOOP, "it is a symbolic link");
	if (is_last && is_open_file(walk, text)) {
		place->is_open_file = true;
		return 0;
	}
	if (walk->links++ == LINKS_MAX)
		return refuse(walk, ELOOP, strerror(ELOOP));
	bool is_foreign = link->st_uid != 0 && link->st_uid != geteuid();
	if (is_foreign && (is_last || (walk->has_stranger && walk->stranger != link->st_uid)))
		return refuse(walk, EPERM, "a link on the way belongs to another user");
	if (is_foreign) {
		walk->has_stranger = true;
		walk->stranger = link->st_uid;
	}
	if ((size_t)snprintf(rest, sizeof(rest), "%s/%s", text, walk->rest) >= sizeof(rest))
		return refuse(walk, ENAMETOOLONG, strerror(ENAMETOOLONG));
	strcpy(walk->rest, is_last ? text : rest);
	return text[0] != '/' || enter(walk, AT_FDCWD, "/") ? 0 : fail(walk);
}

/* Move the next name from the rest to the place. Return whether it is the last one. */
static bool next(struct path_walk *walk)
{
	const char *from = walk->rest + strspn(walk->rest, "/");
	size_t size = strcspn(from, "/");
	bool is_last = !from[size];
	if (size > NAME_MAX) {
		walk->place->name[0] = 0;
		return true;
	}
	memcpy(walk->place->name, from, size);
	walk->place->name[size] = 0;
	memmove(walk->rest, from + size, strlen(from + size) + 1);
	return is_last;
}

static int go(struct path_walk *walk)
{
	struct output_place *place = walk->place;
	struct stat status;
	if (!walk->rest[0])
		return refuse(walk, ENOENT, strerror(ENOENT));
	if (!enter(walk, AT_FDCWD, walk->rest[0] == '/' ? "/" : "."))
		return fail(walk);
	for (;;) {
		bool is_last = next(walk);
		if (!place->name[0] && is_last)
			return refuse(walk, walk->rest[0] ? ENAMETOOLONG : EISDIR,
				      strerror(walk->rest[0] ? ENAMETOOLONG : EISDIR));
		bool is_there = fstatat(place->directory, place->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
		if (!is_there && (errno != ENOENT || !is_last))
			return fail(walk);
		if (is_there && S_ISLNK(status.st_mode)) {
			int error = follow(walk, &status, is_last);
			if (error || place->is_open_file)
				return error;
		} else if (is_last) {
			break;
		} else if (!enter(walk, place->directory, place->name)) {
			return fail(walk);
		}
	}
	if (walk->has_stranger && (fstat(place->directory, &status) != 0 || status.st_uid != walk->stranger))
		return refuse(walk, EPERM, "a link on the way belongs to another user");
	return 0;
}

static int find(struct output_place *place, const char *path, bool follows_last, struct diag *diag)
{
	struct path_walk walk = {.place = place, .path = path, .diag = diag, .follows_last = follows_last};
	*place = (struct output_place){.directory = -1};
	int error = strlen(path) < PATH_MAX ? 0 : refuse(&walk, ENAMETOOLONG, strerror(ENAMETOOLONG));
	if (!error) {
		strcpy(walk.rest, path);
		error = go(&walk);
	}
	if (error && place->directory >= 0)
		close(place->directory);
	return error;
}

int output_place_find(struct output_place *place, const char *path, struct diag *diag)
{
	return find(place, path, true, diag);
}

int output_place_find_unlinked(struct output_place *place, const char *path, struct diag *diag)
{
	return find(place, path, false, diag);
}
