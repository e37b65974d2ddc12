/* SPDX-License-Identifier: MIT */
#include "session/directory/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "os/local_files.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/directory/places.h"

enum {
	NAME_MAX_BYTES = 64,
	BACKLOG = 16,
	CONNECT_MS = 10000,
	CONNECT_PAUSE_MS = 5,
	TEXT_MAX = 256 * 1024,
	OTHERS_MAX = 64,
	OTHERS_WRITE = S_IWGRP | S_IWOTH
};
enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
#define NAME_SUFFIX ".session"

/* ---- the directory ---- */

int session_directory_make(struct session_directory *directory, struct diag *diag)
{
	struct place place;
	*directory = (struct session_directory){.place = -1, .fd = -1};
	int error = place_open(&place, diag);
	if (error)
		return error;
	directory->place = place.fd;
	snprintf(directory->path, sizeof(directory->path), "%s/%d-XXXXXX", place.path, (int)getpid());
	if (!mkdtemp(directory->path))
		return diag_errno(diag, "cannot make %s (XHEAP_RUNTIME_DIR can name another place)", directory->path);
	directory->fd = openat(place.fd, text_file_name(directory->path), DIRECTORY);
	if (directory->fd >= 0 && place_is_own(directory->fd, geteuid()))
		return 0;
	session_directory_close(directory);
	return diag_fail(diag, EPERM, "cannot use %s", directory->path);
}

int session_directory_open(struct session_directory *directory, const char *path, struct diag *diag)
{
	struct stat status;
	*directory = (struct session_directory){.place = -1, .fd = -1};
	snprintf(directory->path, sizeof(directory->path), "%.*s", (int)sizeof(directory->path) - 1, path);
	directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory->fd < 0 || fstat(directory->fd, &status) != 0) {
		int error = diag_errno(diag, "cannot open %s", path);
		session_directory_close(directory);
		return error;
	}
	/* Its files say which others are written and removed. */
	if (status.st_uid == geteuid() && !(status.st_mode & OTHERS_WRITE))
		return 0;
	session_directory_close(directory);
	return diag_fail(diag, EPERM,
			 "%s does not belong to this user alone, so others could choose which files are written; "
			 "recover it as user %u",
			 path, (unsigned)status.st_uid);
}

void session_directory_close(struct session_directory *directory)
{
	if (directory->fd >= 0)
		close(directory->fd);
	if (directory->place >= 0)
		close(directory->place);
	directory->fd = directory->place = -1;
}

/* ---- its texts ---- */

int session_file_write(const struct session_directory *directory, const char *name, const struct fields *fields,
		       struct diag *diag)
{
	char temporary[128];
	snprintf(temporary, sizeof(temporary), "%.100s.new", name);
	unlinkat(directory->fd, temporary, 0);
	int fd = openat(directory->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return diag_errno(diag, "cannot write %s/%s", directory->path, temporary);
	bool is_written = write(fd, fields->text, fields->size) == (ssize_t)fields->size;
	close(fd);
	if (!is_written || renameat(directory->fd, temporary, directory->fd, name) != 0)
		return diag_errno(diag, "cannot write %s/%s", directory->path, name);
	return 0;
}

void session_mark(const struct session_directory *directory, const char *name)
{
	int fd = openat(directory->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

bool session_is_marked(const struct session_directory *directory, const char *name)
{
	struct stat status;
	return fstatat(directory->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

char *session_file_read(const struct session_directory *directory, const char *name)
{
	struct stat status;
	int fd = openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	errno = fd >= 0 && !is_file ? EINVAL : errno;
	char *text = is_file ? malloc(TEXT_MAX + 1) : NULL;
	ssize_t size = text ? read(fd, text, TEXT_MAX) : -1;
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (size >= 0) {
		text[size] = 0;
		return text;
	}
	free(text);
	errno = error;
	return NULL;
}

/* ---- names ---- */

bool session_name_is_good(const char *name)
{
	size_t length = 0;
	for (; name[length]; length++)
		if ((unsigned char)name[length] < ' ' || name[length] == '/' || name[length] == 0x7f)
			return false;
	return length > 0 && length <= NAME_MAX_BYTES && !strchr(".- ", name[0]) && text_shown(name) == name;
}

/* Get the number at the start of the text, and the rest behind it. */
static bool user_of(const char *text, uid_t *user, const char **rest)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);
	*user = (uid_t)number;
	*rest = end;
	return text[0] >= '0' && text[0] <= '9' && number < UINT_MAX;
}

/* Split "UID/NAME" into the name and its user. Return NULL if this user cannot see such a session. */
static const char *name_of_other(const char *text, uid_t *user)
{
	const char *rest;
	return geteuid() == 0 && user_of(text, user, &rest) && rest[0] == '/' && session_name_is_good(rest + 1)
		       ? rest + 1
		       : NULL;
}

bool session_name_is_possible(const char *name)
{
	uid_t user;
	return session_name_is_good(name) || name_of_other(name, &user);
}

/* Write the name of a session's link in its place; the link's text is the directory's name there. */
static void name_link(char link[NAME_MAX_BYTES + 16], const char *name)
{
	snprintf(link, NAME_MAX_BYTES + 16, "%.64s" NAME_SUFFIX, name);
}

/* Return a socket's address through the directory's descriptor. The directory's path may be too long for an address,
   and need not be resolved again. */
static struct sockaddr_un socket_address(int directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control", directory);
	return address;
}

/* Return whether the listening process is the user's. */
static bool is_peer(int socket, uid_t user)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == user;
}

/* Connect to the directory's socket. While its queue is full, try again until that time: a stopped process takes no
   connection. The socket is opened first, as another user's `control` may be a link to anything. Return a descriptor,
   or a negative errno; -EAGAIN: the time is over. */
static int connect_in(int directory, uid_t user, uint64_t until_ns)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	int file = place_open_within(directory, "control", O_PATH);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool is_connected = false;
	int error = file < 0 || fd < 0 || fstat(file, &status) != 0 ? -errno : S_ISSOCK(status.st_mode) ? 0 : -EINVAL;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	while (!error && !is_connected) {
		is_connected = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
		error = is_connected ? (is_peer(fd, user) ? 0 : -EPERM) : errno == EINTR ? 0 : -errno;
		if (error == -EAGAIN && monotonic_now_ns() < until_ns) {
			error = 0;
			monotonic_pause(CONNECT_PAUSE_MS * NS_PER_MS);
		}
	}
	if (file >= 0)
		close(file);
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}

int session_listen(const struct session_directory *directory, struct diag *diag)
{
	struct sockaddr_un address = socket_address(directory->fd);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, BACKLOG))
		return fd;
	int error = diag_errno(diag, "cannot make the socket %s/control", directory->path);
	if (fd >= 0)
		close(fd);
	return error;
}

/* Open the session's directory by the name's link in the place. Return a descriptor, or a negative errno. */
static int name_open(const struct place *place, const char *name)
{
	char link[NAME_MAX_BYTES + 16], directory[NAME_MAX + 1];
	name_link(link, name);
	ssize_t length = readlinkat(place->fd, link, directory, sizeof(directory) - 1);
	if (length < 0)
		return -errno;
	directory[length] = 0;
	errno = EINVAL;
	int fd = strchr(directory, '/') || directory[0] == '.'
			 ? -1
			 : place_open_within(place->fd, directory, O_RDONLY | O_DIRECTORY);
	if (fd >= 0 && place_is_own(fd, place->user))
		return fd;
	/* A session that was recovered has no directory any more. */
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd >= 0)
		close(fd);
	return -ECONNREFUSED;
}

struct wanted {
	const char *name;
	uint64_t until_ns; /* when to give up */
	int socket;        /* or a negative errno; -ENOENT: there is no such name */
};

static bool connect_at(void *cookie, const struct place *place)
{
	struct wanted *wanted = cookie;
	int directory = name_open(place, wanted->name);
	if (directory == -ENOENT)
		return false;
	wanted->socket = directory < 0 ? directory : connect_in(directory, place->user, wanted->until_ns);
	/* A logger that ends for that takes connections until the kernel has closed its descriptors. */
	if (directory >= 0 && session_is_marked(&(struct session_directory){.fd = directory}, SESSION_NO_MEMORY)) {
		if (wanted->socket >= 0)
			close(wanted->socket);
		wanted->socket = -ENOMEM;
	}
	if (directory >= 0)
		close(directory);
	return wanted->socket >= 0;
}

static int name_connect(const char *name, uid_t user, unsigned limit_ms)
{
	struct wanted wanted = {name, monotonic_now_ns() + limit_ms * NS_PER_MS, -ENOENT};
	places_each(user, user == geteuid() ? UINT64_MAX : wanted.until_ns, connect_at, &wanted);
	return wanted.socket;
}

/* Let no other process change the links of this place. A process that is stopped meanwhile delays others for a second
   at most. Return a descriptor, which the caller closes to end that, or -1. */
static int links_lock(int place)
{
	enum { TRIES = 100, PAUSE_US = 10000 };
	int fd = openat(place, ".", DIRECTORY);
	for (int i = 0; fd >= 0 && i < TRIES && flock(fd, LOCK_EX | LOCK_NB); i++)
		usleep(PAUSE_US);
	return fd;
}

/* Read the name of the directory that a link leads to. Return false if there is no such link. */
static bool link_read(int place, const char *link, char target[NAME_MAX + 1])
{
	ssize_t length = readlinkat(place, link, target, NAME_MAX);
	target[length > 0 ? length : 0] = 0;
	return length > 0;
}

/* Remove the link if it still leads to this directory: another session may have taken the name. Links are locked. */
static bool link_drop(int place, const char *link, const char *directory)
{
	char target[NAME_MAX + 1];
	return link_read(place, link, target) && strcmp(target, directory) == 0 && unlinkat(place, link, 0) == 0;
}

static void link_drop_locked(int place, const char *link, const char *directory)
{
	int lock = links_lock(place);
	link_drop(place, link, directory);
	if (lock >= 0)
		close(lock);
}

int session_name_take(const char *name, const struct session_directory *directory, struct diag *diag)
{
	char link[NAME_MAX_BYTES + 16], before[NAME_MAX + 1];
	const char *own = text_file_name(directory->path);
	name_link(link, name);
	for (int attempt = 0; attempt < 3; attempt++) {
		bool has_link = link_read(directory->place, link, before);
		int fd = name_connect(name, geteuid(), CONNECT_MS);
		if (fd >= 0) {
			close(fd);
			break;
		}
		int lock = links_lock(directory->place);
		/* The link of a dead logger makes way. */
		if (has_link)
			link_drop(directory->place, link, before);
		int error = symlinkat(own, directory->place, link) ? errno : 0;
		if (lock >= 0)
			close(lock);
		if (!error)
			return 0;
		errno = error;
		if (error != EEXIST)
			return diag_errno(diag, "cannot make a link %s beside %s", link, directory->path);
	}
	return diag_fail(diag, EEXIST, "session %s exists already", name);
}

void session_name_drop(const char *name, const struct session_directory *directory)
{
	char link[NAME_MAX_BYTES + 16];
	name_link(link, name);
	link_drop_locked(directory->place, link, text_file_name(directory->path));
}

int session_connect_within(const char *name, unsigned limit_ms, struct diag *diag)
{
	uid_t user = geteuid();
	const char *of_other = name_of_other(name, &user);
	int fd = of_other                     ? name_connect(of_other, user, limit_ms)
		 : session_name_is_good(name) ? name_connect(name, user, limit_ms)
					      : -ENOENT;
	if (fd == -ENOENT)
		return diag_fail(diag, ENOENT, "there is no session %s; xheap sessions lists them", name);
	if (fd == -EAGAIN)
		return diag_fail(diag, EAGAIN, "the logger of session %s does not answer", name);
	return fd >= 0 ? fd
		       : diag_fail(diag, -fd, "the logger of session %s %s; xheap recover saves what it recorded", name,
				   fd == -ENOMEM ? "ended for want of memory" : "is gone");
}

int session_connect(const char *name, struct diag *diag)
{
	return session_connect_within(name, CONNECT_MS, diag);
}

int session_connect_at(const char *path, unsigned limit_ms, struct diag *diag)
{
	struct session_directory directory;
	int fd = session_directory_open(&directory, path, diag);
	if (fd)
		return fd;
	fd = connect_in(directory.fd, geteuid(), monotonic_now_ns() + limit_ms * NS_PER_MS);
	session_directory_close(&directory);
	return fd >= 0 ? fd : diag_fail(diag, -fd, "the logger of %s does not answer", path);
}

/* ---- all of them ---- */

struct directory_visit {
	void (*visit)(void *cookie, const char *name);
	void *cookie;
};

/* Return whether the entry is a session's name, which is left there without its suffix. */
static bool take_name(int place, bool is_own, char *entry)
{
	size_t length = strlen(entry), suffix = strlen(NAME_SUFFIX);
	if (length <= suffix || strcmp(entry + length - suffix, NAME_SUFFIX) != 0)
		return false;
	/* A session that was recovered has no directory any more. */
	char target[NAME_MAX + 1];
	if (!link_read(place, entry, target) || faccessat(place, target, F_OK, 0) != 0) {
		if (is_own)
			link_drop_locked(place, entry, target);
		return false;
	}
	entry[length - suffix] = 0;
	return session_name_is_good(entry);
}

static DIR *place_list(const struct place *place)
{
	int fd = openat(place->fd, ".", DIRECTORY);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !directory)
		close(fd);
	return directory;
}

static bool names_each(void *cookie, const struct place *place)
{
	const struct directory_visit *visiting = cookie;
	DIR *directory = place_list(place);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		if (take_name(place->fd, true, entry->d_name))
			visiting->visit(visiting->cookie, entry->d_name);
	if (directory)
		closedir(directory);
	return false;
}

void session_each(void (*visit)(void *cookie, const char *name), void *cookie)
{
	struct directory_visit visiting = {visit, cookie};
	places_each(geteuid(), UINT64_MAX, names_each, &visiting);
}

/* The users whose sessions were visited, and how often. */
struct user_visit {
	session_visit *visit;
	void *cookie;
	uint64_t until_ns;
	struct {
		uid_t user;
		unsigned count;
	} seen[OTHERS_MAX];
	unsigned seen_count;
};

/* Return whether a session more of the user may be visited, and count it. */
static bool others_count(struct user_visit *users, uid_t user)
{
	unsigned i = 0;
	while (i < users->seen_count && users->seen[i].user != user)
		i++;
	if (i == OTHERS_MAX)
		return false;
	users->seen_count += i == users->seen_count;
	users->seen[i].user = user;
	return users->seen[i].count++ < SESSIONS_OF_USER_MAX;
}

static bool others_each(void *cookie, const struct place *place)
{
	struct user_visit *users = cookie;
	bool is_enough = false;
	DIR *directory = place_list(place);
	for (struct dirent *entry; directory && !is_enough && (entry = readdir(directory));) {
		char name[NAME_MAX_BYTES + 32];
		is_enough = monotonic_now_ns() >= users->until_ns;
		if (is_enough || !take_name(place->fd, false, entry->d_name))
			continue;
		if (!others_count(users, place->user))
			break;
		struct wanted wanted = {entry->d_name, 0, -ENOENT};
		connect_at(&wanted, place);
		snprintf(name, sizeof(name), "%u/%.64s", (unsigned)place->user, entry->d_name);
		users->visit(users->cookie, name, wanted.socket);
	}
	if (directory)
		closedir(directory);
	return is_enough;
}

bool session_each_other(uint64_t until_ns, session_visit *visit, void *cookie)
{
	struct user_visit users = {.visit = visit, .cookie = cookie, .until_ns = until_ns};
	if (geteuid() != 0)
		return true;
	places_each_other(until_ns, others_each, &users);
	return monotonic_now_ns() < until_ns;
}

static bool directories_each(void *cookie, const struct place *place)
{
	const struct directory_visit *visiting = cookie;
	DIR *directory = place_list(place);
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		char path[PLACE_PATH_BYTES + NAME_MAX + 2];
		/* A link is a session's name. */
		if (entry->d_name[0] == '.' || entry->d_type == DT_LNK)
			continue;
		snprintf(path, sizeof(path), "%s/%s", place->path, entry->d_name);
		visiting->visit(visiting->cookie, path);
	}
	if (directory)
		closedir(directory);
	return false;
}

void session_each_directory(void (*visit)(void *cookie, const char *path), void *cookie)
{
	struct directory_visit visiting = {visit, cookie};
	places_each(geteuid(), UINT64_MAX, directories_each, &visiting);
}

/* Get the session's name or trace path. */
static bool title_of(const struct session_directory *directory, char *title, size_t size)
{
	char *text = session_file_read(directory, "session");
	bool is_found = text && ((fields_value(text, "name", title, size) && title[0]) ||
				 (fields_value(text, "trace", title, size) && title[0]));
	free(text);
	return is_found;
}

/* Open the directory at the path if it lies in a place of this user, of root or of the process's owner, without
   waiting for a file system. Write the user. Return a descriptor, or -1. */
static int directory_of_region(const char *path, pid_t pid, uid_t *user)
{
	int64_t owner = proc_status_value(pid, "Uid");
	const uid_t users[] = {geteuid(), 0, (uid_t)owner};
	int named = local_find(-1, path), fd = -1;
	if (named >= 0 && local_is(named, 0))
		for (size_t i = 0; i < sizeof(users) / sizeof(users[0]) && fd < 0 && owner >= 0; i++)
			if (place_has_directory(named, users[i])) {
				*user = users[i];
				fd = openat(named, ".", DIRECTORY);
			}
	if (named >= 0)
		close(named);
	return fd;
}

static bool is_region(int directory, const char *name, const struct proc_map *map)
{
	struct stat status;
	return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
	       status.st_ino == map->inode && major(status.st_dev) == map->device_major &&
	       minor(status.st_dev) == map->device_minor;
}

/* Return whether a session of this user will be recovered, or another one's logger takes connections: a user's own
   session is the only thing that another one may claim. */
static bool counts(int directory, uid_t user)
{
	enum { OTHERS_MS = 1000 };
	if (user == geteuid())
		return true;
	int socket = connect_in(directory, user, monotonic_now_ns() + OTHERS_MS * NS_PER_MS);
	if (socket >= 0)
		close(socket);
	return socket >= 0;
}

/* Of this user's sessions those count whose logger is gone, too: say how to get on. */
static void say_if_gone(int directory, uid_t user, char *title, size_t size)
{
	size_t length = strlen(title);
	int socket = user == geteuid() ? connect_in(directory, user, 0) : -EAGAIN;
	if (socket >= 0)
		close(socket);
	else if (socket == -ECONNREFUSED)
		snprintf(title + length, size - length, ", whose logger is gone: xheap recover saves what it recorded");
}

static bool session_of_map(pid_t pid, struct proc_map *map, char *name, size_t size)
{
	struct session_directory directory = {.place = -1, .fd = -1};
	uid_t user = 0;
	char *slash = strrchr(map->path, '/');
	if (!slash || strncmp(slash, "/region.", strlen("/region.")) != 0)
		return false;
	*slash = 0;
	directory.fd = directory_of_region(map->path, pid, &user);
	bool is_found = directory.fd >= 0 && is_region(directory.fd, slash + 1, map) && counts(directory.fd, user) &&
			title_of(&directory, name, size);
	if (is_found)
		say_if_gone(directory.fd, user, name, size);
	session_directory_close(&directory);
	return is_found;
}

/* A region whose file still exists belongs to a session that is live, or will be recovered. Any process can map any
   file that has such a name. */
bool session_of_process(pid_t pid, char *name, size_t size)
{
	struct proc_map *maps = NULL;
	int count = proc_read_maps(pid, &maps);
	bool is_found = false;
	for (int i = 0; i < count && !is_found; i++)
		is_found = session_of_map(pid, &maps[i], name, size);
	free(maps);
	return is_found;
}

/* ---- removing ---- */

/* Remove the region's file and the directory that was made for it alone. */
static void elsewhere_remove(char *path)
{
	char *name = strrchr(path, '/');
	*name++ = 0;
	int fd = open(path, DIRECTORY);
	if (fd >= 0 && place_is_own(fd, geteuid()))
		unlinkat(fd, name, 0);
	if (fd >= 0)
		close(fd);
	rmdir(path);
}

void session_file_remove(const struct session_directory *directory, const char *name)
{
	char path[600];
	ssize_t length = strncmp(name, "region.", strlen("region.")) == 0
				 ? readlinkat(directory->fd, name, path, sizeof(path) - 1)
				 : -1;
	path[length > 0 ? length : 0] = 0;
	if (path[0] == '/')
		elsewhere_remove(path);
	unlinkat(directory->fd, name, 0);
}

void session_directory_remove(struct session_directory *directory)
{
	int fd = openat(directory->fd, ".", DIRECTORY);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	for (struct dirent *entry; list && (entry = readdir(list));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			session_file_remove(directory, entry->d_name);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	if (directory->place < 0 || unlinkat(directory->place, text_file_name(directory->path), AT_REMOVEDIR) != 0)
		rmdir(directory->path);
	session_directory_close(directory);
}
