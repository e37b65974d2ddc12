/* SPDX-License-Identifier: MIT */
#include "session/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "os/proc.h"

enum { TMPFS = 0x01021994, NAME_MAX_BYTES = 64, BACKLOG = 16, CONNECT_SECONDS = 10 };
#define NAME_SUFFIX ".session"

static bool is_tmpfs(const char *path)
{
	struct statfs status;
	return statfs(path, &status) == 0 && status.f_type == TMPFS && access(path, W_OK | X_OK) == 0;
}

void session_root(char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	snprintf(path, size, "%s/xheap-%u", runtime && runtime[0] == '/' && is_tmpfs(runtime) ? runtime : "/dev/shm", (unsigned)geteuid());
}

int session_directory_make(char *path, size_t size, struct diag *diag)
{
	char root[256];
	struct stat status;
	session_root(root, sizeof(root));
	if (mkdir(root, 0700) != 0 && errno != EEXIST)
		return diag_errno(diag, "cannot make %s", root);
	/* In a directory that anybody may write to, somebody else may have made it before. */
	if (lstat(root, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077))
		return diag_fail(diag, EPERM, "cannot use %s: it is not a directory of this user's alone", root);
	snprintf(path, size, "%s/%d-XXXXXX", root, (int)getpid());
	if (!mkdtemp(path))
		return diag_errno(diag, "cannot make %s", path);
	return 0;
}

int session_file_write(const char *directory, const char *name, const char *text, struct diag *diag)
{
	char path[512], temporary[520];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return diag_errno(diag, "cannot write %s", temporary);
	size_t size = strlen(text);
	bool is_written = write(fd, text, size) == (ssize_t)size;
	close(fd);
	if (!is_written || rename(temporary, path) != 0)
		return diag_errno(diag, "cannot write %s", path);
	return 0;
}

/* ---- names ---- */

bool session_name_is_good(const char *name)
{
	size_t length = 0;
	for (; name[length]; length++)
		if ((unsigned char)name[length] < ' ' || name[length] == '/' || name[length] == 0x7f)
			return false;
	return length > 0 && length <= NAME_MAX_BYTES && !strchr(".- ", name[0]);
}

/* A link with the name leads to the session's directory. */
static void name_path_in(char *path, size_t size, const char *root, const char *name)
{
	snprintf(path, size, "%s/%.64s" NAME_SUFFIX, root, name);
}

static void name_path(char *path, size_t size, const char *name)
{
	char root[256];
	session_root(root, sizeof(root));
	name_path_in(path, size, root, name);
}

/* ---- other users', for root ---- */

/* Where sessions of others are, by user: /dev/shm/xheap-UID, /run/user/UID/xheap-UID. */
static const struct { const char *folder, *before; bool is_within; } places[] = {{"/dev/shm", "xheap-", false}, {"/run/user", "", true}};
enum { PLACES = sizeof(places) / sizeof(*places) };

/* False when there is none there that is this user's own. */
static bool root_of(char *root, size_t size, unsigned place, uid_t user)
{
	struct stat status;
	int length = snprintf(root, size, "%s", places[place].folder);
	if (places[place].is_within)
		length += snprintf(root + length, size - (size_t)length, "/%u", (unsigned)user);
	snprintf(root + length, size - (size_t)length, "/xheap-%u", (unsigned)user);
	return lstat(root, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == user;
}

/* The number that the text begins with, and what is behind it. */
static bool user_of(const char *text, uid_t *user, const char **rest)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);
	*user = (uid_t)number;
	*rest = end;
	return text[0] >= '0' && text[0] <= '9' && number < UINT_MAX;
}

/* "UID/NAME": the name, and whose it is. NULL: it is nothing that this user could see. */
static const char *name_of_other(const char *text, uid_t *user)
{
	const char *rest;
	return geteuid() == 0 && user_of(text, user, &rest) && rest[0] == '/' && session_name_is_good(rest + 1) ? rest + 1 : NULL;
}

bool session_name_is_possible(const char *name)
{
	uid_t user;
	return session_name_is_good(name) || name_of_other(name, &user);
}

static int socket_address(struct sockaddr_un *address, const char *directory)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	int length = snprintf(address->sun_path, sizeof(address->sun_path), "%s/control", directory);
	return length < (int)sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

static int connect_in(const char *directory)
{
	struct sockaddr_un address;
	if (socket_address(&address, directory) != 0)
		return -ENAMETOOLONG;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* One that never takes connections is not waited for for ever. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = CONNECT_SECONDS}, sizeof(struct timeval));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	int error = -errno;
	close(fd);
	return error;
}

int session_listen(const char *directory, struct diag *diag)
{
	struct sockaddr_un address;
	int error = socket_address(&address, directory);
	if (error)
		return diag_fail(diag, -error, "the path of %s is too long for a socket", directory);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, BACKLOG))
		return fd;
	error = diag_errno(diag, "cannot make the socket %s", address.sun_path);
	if (fd >= 0)
		close(fd);
	return error;
}

static int link_read(const char *path, char *directory, size_t size)
{
	ssize_t length = readlink(path, directory, size - 1);
	if (length < 0)
		return -errno;
	directory[length] = 0;
	return 0;
}

static int name_directory(const char *name, char *directory, size_t size)
{
	char path[400];
	name_path(path, sizeof(path), name);
	return link_read(path, directory, size);
}

/* Whoever listens there has to be the user's: the way to it is theirs, too, and may lead anywhere. */
static bool is_peer(int socket, uid_t user)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == user;
}

static int connect_other(const char *name, uid_t user)
{
	char root[256], path[400], directory[512];
	int error = -ENOENT;
	for (unsigned i = 0; i < PLACES; i++) {
		if (!root_of(root, sizeof(root), i, user))
			continue;
		name_path_in(path, sizeof(path), root, name);
		if (link_read(path, directory, sizeof(directory)))
			continue;
		int fd = connect_in(directory);
		if (fd >= 0 && is_peer(fd, user))
			return fd;
		if (fd >= 0)
			close(fd);
		error = fd < 0 ? fd : -EPERM;
	}
	return error;
}

int session_name_take(const char *name, const char *directory, struct diag *diag)
{
	char path[400], other[512];
	name_path(path, sizeof(path), name);
	for (int attempt = 0; attempt < 3; attempt++) {
		if (!symlink(directory, path))
			return 0;
		if (errno != EEXIST)
			return diag_errno(diag, "cannot make %s", path);
		/* One whose logger is dead has no name any more. */
		int fd = name_directory(name, other, sizeof(other)) ? -ENOENT : connect_in(other);
		if (fd >= 0) {
			close(fd);
			break;
		}
		unlink(path);
	}
	return diag_fail(diag, EEXIST, "there is a session %s already", name);
}

void session_name_drop(const char *name)
{
	char path[400];
	name_path(path, sizeof(path), name);
	unlink(path);
}

int session_connect(const char *name, struct diag *diag)
{
	char directory[512];
	uid_t user;
	const char *of_other = name_of_other(name, &user);
	int error = of_other || !session_name_is_good(name) ? -ENOENT : name_directory(name, directory, sizeof(directory));
	int fd = of_other ? connect_other(of_other, user) : error ? error : connect_in(directory);
	if (fd == -ENOENT && (error || of_other))
		return diag_fail(diag, ENOENT, "there is no session %s; xheap sessions lists them", name);
	return fd >= 0 ? fd : diag_fail(diag, -fd, "the logger of session %s is gone; xheap recover saves what it recorded", name);
}

struct visiting {
	void (*visit)(void *cookie, const char *name);
	void *cookie;
};

/* before: "UID/" where they are another user's. */
static void names_each(const char *root, const char *before, const struct visiting *visiting)
{
	DIR *directory = opendir(root);
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		char name[NAME_MAX_BYTES + 32];
		size_t length = strlen(entry->d_name), suffix = strlen(NAME_SUFFIX);
		if (length <= suffix || strcmp(entry->d_name + length - suffix, NAME_SUFFIX) != 0)
			continue;
		/* One that was recovered is none any more. */
		if (faccessat(dirfd(directory), entry->d_name, F_OK, 0) != 0) {
			if (!before[0])
				unlinkat(dirfd(directory), entry->d_name, 0);
			continue;
		}
		entry->d_name[length - suffix] = 0;
		if (!session_name_is_good(entry->d_name))
			continue;
		snprintf(name, sizeof(name), "%s%s", before, entry->d_name);
		visiting->visit(visiting->cookie, name);
	}
	if (directory)
		closedir(directory);
}

static void others_each(unsigned place, const struct visiting *visiting)
{
	size_t before = strlen(places[place].before);
	DIR *directory = opendir(places[place].folder);
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		char root[256], prefix[32];
		const char *rest;
		uid_t user;
		if (strncmp(entry->d_name, places[place].before, before) != 0 || !user_of(entry->d_name + before, &user, &rest) || *rest || user == geteuid() ||
		    !root_of(root, sizeof(root), place, user))
			continue;
		snprintf(prefix, sizeof(prefix), "%u/", (unsigned)user);
		names_each(root, prefix, visiting);
	}
	if (directory)
		closedir(directory);
}

void session_each(void (*visit)(void *cookie, const char *name), void *cookie)
{
	const struct visiting visiting = {visit, cookie};
	char root[256];
	session_root(root, sizeof(root));
	names_each(root, "", &visiting);
	for (unsigned i = 0; i < PLACES && geteuid() == 0; i++)
		others_each(i, &visiting);
}

/* The value of a line "name=value" of the file. */
static bool file_value(const char *path, const char *name, char *value, size_t size)
{
	char line[4200];
	size_t length = strlen(name);
	bool is_found = false;
	FILE *file = fopen(path, "re");
	while (file && !is_found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		is_found = !strncmp(line, name, length) && line[length] == '=' && line[length + 1];
		if (is_found)
			snprintf(value, size, "%.*s", (int)size - 1, line + length + 1);
	}
	if (file)
		fclose(file);
	return is_found;
}

/* A region whose file is still there belongs to a logger that is, or will be recovered. */
bool session_of_process(pid_t pid, char *name, size_t size)
{
	struct proc_map *maps = NULL;
	int count = proc_read_maps(pid, &maps);
	bool is_found = false;
	for (int i = 0; i < count && !is_found; i++) {
		char path[600];
		char *slash = strrchr(maps[i].path, '/');
		if (!strstr(maps[i].path, "/xheap-") || !slash || strncmp(slash, "/region.", 8) != 0 || access(maps[i].path, F_OK) != 0)
			continue;
		*slash = 0;
		snprintf(path, sizeof(path), "%s/session", maps[i].path);
		is_found = file_value(path, "name", name, size) || file_value(path, "trace", name, size);
	}
	free(maps);
	return is_found;
}

void session_file_remove(const char *directory, const char *name)
{
	char own[600], path[600];
	snprintf(own, sizeof(own), "%s/%s", directory, name);
	if (strncmp(name, "region.", strlen("region.")) == 0 && link_read(own, path, sizeof(path)) == 0 && path[0] == '/') {
		unlink(path);
		*strrchr(path, '/') = 0;
		rmdir(path);
	}
	unlink(own);
}

void session_directory_remove(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		session_file_remove(path, entry->d_name);
	}
	if (directory)
		closedir(directory);
	rmdir(path);
}
