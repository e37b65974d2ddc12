/* SPDX-License-Identifier: MIT */
#include "session/directory/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "os/monotonic.h"

#define SHARED "/dev/shm"
#define PREFIX "xheap-"
#define OWN_PLACE "XHEAP_RUNTIME_DIR"

/* Permissions that others must not have for a directory; and the room that one process's buffers take at most. */
enum { TMPFS = 0x01021994, OTHERS_WRITE = S_IWGRP | S_IWOTH, OTHERS = S_IRWXG | S_IRWXO, ROOM_BYTES = 64 << 20 };
enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* ---- proofs ---- */

static bool is_closed_to(int fd, uid_t user, mode_t forbidden)
{
	struct stat status;
	return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == user &&
	       !(status.st_mode & forbidden);
}

bool place_is_own(int fd, uid_t user)
{
	return is_closed_to(fd, user, OTHERS);
}

/* Replace *fd by the next directory upwards. Return false if there is none. */
static bool go_up(int *fd, struct stat *status)
{
	struct stat below = *status;
	int above = openat(*fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	close(*fd);
	*fd = above;
	return above >= 0 && fstat(above, status) == 0 &&
	       (status->st_dev != below.st_dev || status->st_ino != below.st_ino);
}

/* Return whether no other user can replace the directory. Those above it must belong to the user or to the owner of the
   root directory; others may write there only under a sticky bit. */
static bool is_out_of_reach(int fd, uid_t user)
{
	struct stat root, status;
	bool is_safe = stat("/", &root) == 0 && fstat(fd, &status) == 0;
	int at = is_safe ? openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	is_safe = at >= 0;
	while (is_safe && go_up(&at, &status))
		is_safe = (status.st_uid == user || status.st_uid == 0 || status.st_uid == root.st_uid) &&
			  (!(status.st_mode & OTHERS_WRITE) || (status.st_mode & S_ISVTX));
	is_safe &= at >= 0;
	if (at >= 0)
		close(at);
	return is_safe;
}

bool place_has_directory(int directory, uid_t user)
{
	int place = openat(directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is_true = place >= 0 && place_is_own(directory, user) && place_is_own(place, user) &&
		       is_out_of_reach(place, user);
	if (place >= 0)
		close(place);
	return is_true;
}

static bool is_tmpfs(int fd)
{
	struct statfs status;
	return fstatfs(fd, &status) == 0 && status.f_type == TMPFS;
}

bool place_has_room(int fd)
{
	struct statfs status;
	return fstatfs(fd, &status) == 0 && (uint64_t)status.f_bavail * (uint64_t)status.f_bsize >= ROOM_BYTES;
}

/* ---- places with a known name ---- */

/* A directory for files of this run of the machine, and the name that a place has in it. */
struct runtime {
	const char *path;
	char name[32];
	mode_t forbidden;
};

/* Open the runtime directory if it passes the proof. Return -1 otherwise. */
static int runtime_open(const struct runtime *runtime, uid_t user)
{
	if (!runtime->path || runtime->path[0] != '/')
		return -1;
	int fd = open(runtime->path, DIRECTORY);
	if (fd < 0 || (is_closed_to(fd, user, runtime->forbidden) && is_tmpfs(fd) && is_out_of_reach(fd, user)))
		return fd;
	close(fd);
	return -1;
}

/* Another user may mount a file system of their own over a directory that is theirs, and let it hang: no mount is
   entered, and no link followed. */
int place_open_within(int within, const char *name, int flags)
{
	const struct open_how how = {.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
				     .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
	int fd = (int)syscall(SYS_openat2, within, name, &how, sizeof(how));
	/* A kernel before 5.6 has mounts of users only by their own namespaces, and by fusermount. */
	return fd < 0 && errno == ENOSYS ? openat(within, name, flags | O_NOFOLLOW | O_CLOEXEC) : fd;
}

static int own_open(int within, const char *name, uid_t user)
{
	int fd = place_open_within(within, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || place_is_own(fd, user))
		return fd;
	close(fd);
	return -1;
}

static bool place_in(struct place *place, const struct runtime *runtime, uid_t user, bool is_made)
{
	int fd = runtime_open(runtime, user);
	*place = (struct place){.fd = -1, .user = user};
	if (fd < 0 || snprintf(place->path, sizeof(place->path), "%s/%s", runtime->path, runtime->name) >=
			      (int)sizeof(place->path))
		goto out;
	if (is_made && mkdirat(fd, runtime->name, 0700) && errno != EEXIST)
		goto out;
	place->fd = own_open(fd, runtime->name, user);
out:
	if (fd >= 0)
		close(fd);
	return place->fd >= 0;
}

static struct runtime runtime_of(const char *path, uid_t user, mode_t forbidden)
{
	struct runtime runtime = {.path = path, .forbidden = forbidden};
	snprintf(runtime.name, sizeof(runtime.name), PREFIX "%u", (unsigned)user);
	return runtime;
}

static const struct runtime runtime_of_root = {.path = "/run", .name = "xheap", .forbidden = OTHERS_WRITE};

/* ---- in shared memory ---- */

/* Get the number at the start of the text, and the rest behind it. */
static bool user_of(const char *text, uid_t *user, const char **rest)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);
	*user = (uid_t)number;
	*rest = end;
	return text[0] >= '0' && text[0] <= '9' && number < UINT_MAX;
}

/* Get the user in the name of a place; anybody may have given the name. */
static bool shared_user(const char *name, uid_t *user)
{
	const char *rest;
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && user_of(name + strlen(PREFIX), user, &rest) &&
	       *rest == '-';
}

/* Visit each shared place of the user or, with is_other, of the other users, until the time is over. */
static bool shared_each(uid_t user, bool is_other, uint64_t until_ns, place_visit *visit, void *cookie)
{
	bool is_enough = false;
	DIR *directory = opendir(SHARED);
	for (struct dirent *entry; directory && !is_enough && (entry = readdir(directory));) {
		struct place place;
		if (monotonic_now_ns() >= until_ns)
			break;
		if (!shared_user(entry->d_name, &place.user) || (place.user == user) == is_other)
			continue;
		place.fd = own_open(dirfd(directory), entry->d_name, place.user);
		if (place.fd < 0)
			continue;
		snprintf(place.path, sizeof(place.path), SHARED "/%.200s", entry->d_name);
		is_enough = visit(cookie, &place);
		close(place.fd);
	}
	if (directory)
		closedir(directory);
	return is_enough;
}

/* The oldest: two commands that make one at the same time find the same one so. Numbers of files grow on a tmpfs. */
struct oldest {
	struct place place;
	ino_t inode;
};

static bool take_oldest(void *cookie, const struct place *place)
{
	struct oldest *oldest = cookie;
	struct stat status;
	if (fstat(place->fd, &status) || (oldest->place.fd >= 0 && oldest->inode <= status.st_ino))
		return false;
	if (oldest->place.fd >= 0)
		close(oldest->place.fd);
	oldest->place = *place;
	oldest->place.fd = fcntl(place->fd, F_DUPFD_CLOEXEC, 0);
	oldest->inode = status.st_ino;
	return false;
}

static int shared_open(struct place *place, struct diag *diag)
{
	struct oldest oldest = {.place.fd = -1};
	char path[PLACE_PATH_BYTES];
	shared_each(geteuid(), false, UINT64_MAX, take_oldest, &oldest);
	if (oldest.place.fd < 0) {
		snprintf(path, sizeof(path), SHARED "/" PREFIX "%u-XXXXXX", (unsigned)geteuid());
		if (!mkdtemp(path))
			return diag_errno(diag, "cannot make %s (XHEAP_RUNTIME_DIR can name another place)", path);
		shared_each(geteuid(), false, UINT64_MAX, take_oldest, &oldest);
		if (oldest.place.fd >= 0 && strcmp(oldest.place.path, path) != 0)
			rmdir(path);
	}
	*place = oldest.place;
	if (place->fd < 0)
		return diag_fail(diag, EPERM, "cannot use %s: a directory that was made there is not this user's",
				 SHARED);
	if (is_out_of_reach(place->fd, place->user))
		return 0;
	close(place->fd);
	return diag_fail(diag, EPERM, "cannot use %s: others could replace it", place->path);
}

/* ---- all places ---- */

int place_open(struct place *place, struct diag *diag)
{
	uid_t user = geteuid();
	const struct runtime runtimes[] = {runtime_of(getenv(OWN_PLACE), user, OTHERS_WRITE), runtime_of_root,
					   runtime_of(getenv("XDG_RUNTIME_DIR"), user, OTHERS)};
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (place_in(place, &runtimes[i], user, true))
			return 0;
	return shared_open(place, diag);
}

static bool visit_in(const struct runtime *runtime, uid_t user, place_visit *visit, void *cookie)
{
	struct place place;
	if (!place_in(&place, runtime, user, false))
		return false;
	bool is_enough = visit(cookie, &place);
	close(place.fd);
	return is_enough;
}

/* Return whether this user has proved a place of their own, which is then the only one, also for sessions of others. */
static bool has_own_place(struct runtime *own)
{
	*own = runtime_of(getenv(OWN_PLACE), geteuid(), OTHERS_WRITE);
	int fd = runtime_open(own, geteuid());
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Return whether the directory of root's own place is there, which is then the only one for root's sessions. */
static bool has_place_of_root(void)
{
	int fd = runtime_open(&runtime_of_root, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool places_each(uid_t user, uint64_t until_ns, place_visit *visit, void *cookie)
{
	bool is_this = user == geteuid();
	char usual[64];
	struct runtime own, runtime = runtime_of(is_this ? getenv("XDG_RUNTIME_DIR") : NULL, user, OTHERS);
	if (has_own_place(&own))
		return is_this && visit_in(&own, user, visit, cookie);
	/* Others can make as many names in shared memory as they like. */
	if (user == 0 && has_place_of_root())
		return visit_in(&runtime_of_root, user, visit, cookie);
	/* A user logged in by other means has no such variable. */
	snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned)user);
	int known = runtime_open(&runtime, user);
	if (known >= 0)
		close(known);
	else
		runtime.path = usual;
	return visit_in(&runtime, user, visit, cookie) || shared_each(user, false, until_ns, visit, cookie);
}

bool places_each_other(uint64_t until_ns, place_visit *visit, void *cookie)
{
	struct runtime own;
	if (has_own_place(&own))
		return false;
	bool is_enough = false;
	DIR *directory = opendir("/run/user");
	for (struct dirent *entry; directory && !is_enough && (entry = readdir(directory));) {
		char path[64];
		const char *rest;
		uid_t user;
		if (monotonic_now_ns() >= until_ns)
			break;
		if (!user_of(entry->d_name, &user, &rest) || *rest || user == geteuid())
			continue;
		snprintf(path, sizeof(path), "/run/user/%u", (unsigned)user);
		const struct runtime runtime = runtime_of(path, user, OTHERS);
		is_enough = visit_in(&runtime, user, visit, cookie);
	}
	if (directory)
		closedir(directory);
	return is_enough || shared_each(geteuid(), true, until_ns, visit, cookie);
}
