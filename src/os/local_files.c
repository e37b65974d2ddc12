/* SPDX-License-Identifier: MIT */
#include "os/local_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/file_systems.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* Overlays above overlays are judged to this depth; the kernel allows no more. */
enum { OVERLAYS_MAX = 2, FIND_TRIES = 8, PATH_BYTES = 4096 };

/* ---- the table of mounts ---- */

/* A line of mountinfo, its texts as they are there. */
struct mount_row {
	long id;
	unsigned major, minor;
	const char *point, *type, *options; /* ended by blanks or the line's end */
	signed char verdict;                /* of this process's table: 1: local, -1: not, 0: not asked yet */
};

struct local_mounts {
	char *text;
	struct mount_row *rows;
	size_t count;
};

/* Return the text's next field. */
static const char *field_behind(const char *at)
{
	at += strcspn(at, " \n");
	return at + (*at == ' ');
}

static bool row_parse(const char *line, struct mount_row *row)
{
	int point = 0;
	if (sscanf(line, "%ld %*s %u:%u %*s %n", &row->id, &row->major, &row->minor, &point) != 3 || !point)
		return false;
	row->point = line + point;
	/* Optional fields end with a "-" of their own. */
	const char *at = field_behind(field_behind(row->point));
	while (*at && *at != '\n' && strncmp(at, "- ", 2) != 0)
		at = field_behind(at);
	row->type = field_behind(at);
	row->options = field_behind(field_behind(row->type));
	row->verdict = 0;
	return *at == '-';
}

static void table_free(struct local_mounts *table)
{
	free(table->text);
	free(table->rows);
	*table = (struct local_mounts){NULL};
}

static size_t count_lines(const char *text)
{
	size_t count = 0;
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

/* Make the table of its text, which it takes; NULL: unknown. */
static void table_make(struct local_mounts *table, char *text)
{
	*table = (struct local_mounts){.text = text};
	table->rows = text ? calloc(count_lines(text) + 1, sizeof(*table->rows)) : NULL;
	for (const char *line = table->rows ? text : ""; *line; line += *line == '\n') {
		table->count += row_parse(line, &table->rows[table->count]);
		line += strcspn(line, "\n");
	}
}

/* Read a table's text; NULL: unknown. */
static char *text_read(int fd)
{
	char *text = NULL;
	size_t size = 0, capacity = 0;
	ssize_t got = 1;
	while (got > 0) {
		if (size + PATH_BYTES > capacity) {
			char *larger = realloc(text, capacity = 2 * capacity + 4 * PATH_BYTES);
			if (!larger)
				break;
			text = larger;
		}
		got = pread(fd, text + size, capacity - size - 1, (off_t)size);
		size += got > 0 ? (size_t)got : 0;
	}
	if (text && got == 0)
		text[size] = 0;
	if (got == 0)
		return text;
	free(text);
	return NULL;
}

static void table_of(struct local_mounts *table, pid_t pid)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	table_make(table, fd >= 0 ? text_read(fd) : NULL);
	if (fd >= 0)
		close(fd);
}

/* This process's table, read anew when the kernel says that it has changed. */
static struct {
	pthread_mutex_t lock;
	pid_t pid; /* a forked process has one of its own */
	int fd;
	struct local_mounts table;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* Lock the table and return it. */
static struct local_mounts *own_lock(void)
{
	pthread_mutex_lock(&own.lock);
	if (own.pid != getpid()) {
		/* The parent's descriptor stays: this process may have closed it, and have another file there. */
		table_free(&own.table);
		own.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		own.pid = getpid();
	}
	struct pollfd changes = {.fd = own.fd, .events = POLLPRI};
	if (own.fd >= 0 && (poll(&changes, 1, 0) != 0 || !own.table.rows)) {
		table_free(&own.table);
		table_make(&own.table, text_read(own.fd));
	}
	return &own.table;
}

static void own_unlock(void)
{
	pthread_mutex_unlock(&own.lock);
}

/* ---- judging ---- */

static bool field_is(const char *field, const char *word)
{
	size_t length = strlen(word);
	return strncmp(field, word, length) == 0 && (field[length] == ' ' || field[length] == '\n');
}

static bool has_local_type(const struct mount_row *row)
{
	return file_system_kind(row->type, strcspn(row->type, " \n")) == FILE_SYSTEM_QUICK;
}

/* Return how much of the path the mount point is; 0: the path is not below it. Both are as in the table. */
static size_t length_above(const struct mount_row *row, const char *path)
{
	size_t length = strcspn(row->point, " ");
	if (length == 1)
		return path[0] == '/';
	return strncmp(row->point, path, length) == 0 && strchr("/,: \n", path[length]) ? length : 0;
}

static bool is_local(struct local_mounts *own_table, struct mount_row *row, int depth);

/* Return whether the layer, whose path ends with the option, a ":" or the line, lies on a local mount of the table. */
static bool is_local_layer(struct local_mounts *own_table, const char *path, int depth)
{
	struct mount_row *nearest = NULL;
	size_t length = 0;
	for (size_t i = 0; i < own_table->count; i++) {
		size_t found = length_above(&own_table->rows[i], path);
		/* Of mounts on one directory the last is the one that is seen. */
		if (found && found >= length) {
			nearest = &own_table->rows[i];
			length = found;
		}
	}
	return nearest && is_local(own_table, nearest, depth);
}

/* Return whether all layers are local. One with a relative path lies beside the upper one: container engines mount
   so. */
static bool has_local_layers(struct local_mounts *own_table, const struct mount_row *row, int depth)
{
	static const char *const names[] = {"lowerdir=", "lowerdir+=", "datadir+=", "upperdir="};
	bool has_upper = false, has_relative = false;
	for (const char *option = row->options; *option && !strchr(" \n", *option);) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			size_t length = strlen(names[i]);
			const char *layer = option + length;
			while (strncmp(option, names[i], length) == 0 && layer) {
				if (layer[0] == '/' && !is_local_layer(own_table, layer, depth))
					return false;
				has_upper |= names[i][0] == 'u';
				has_relative |= layer[0] != '/';
				layer += strcspn(layer, ":, \n");
				layer = *layer == ':' ? layer + 1 + (layer[1] == ':') : NULL;
			}
		}
		option += strcspn(option, ", \n");
		option += *option == ',';
	}
	return has_upper || !has_relative;
}

/* Layers are looked for in this process's table: it is from there that container engines mount. */
static bool is_local(struct local_mounts *own_table, struct mount_row *row, int depth)
{
	if (depth == OVERLAYS_MAX)
		return false;
	if (!row->verdict) {
		bool is_good = field_is(row->type, "overlay") ? has_local_layers(own_table, row, depth + 1)
							      : has_local_type(row);
		row->verdict = is_good ? 1 : -1;
	}
	return row->verdict > 0;
}

/* Return whether the process's mounts are made with this process's rights: by root of this user namespace, and by
   nobody who is root only in one of their own. */
static bool has_mounts_of_own_users(pid_t pid)
{
	char path[40];
	struct stat own_users, users;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	int mounts = open(path, O_RDONLY | O_CLOEXEC);
	int owner = mounts >= 0 ? ioctl(mounts, NS_GET_USERNS) : -1;
	bool is_own = owner >= 0 && fstat(owner, &users) == 0 && stat("/proc/self/ns/user", &own_users) == 0 &&
		      users.st_ino == own_users.st_ino && users.st_dev == own_users.st_dev;
	if (owner >= 0)
		close(owner);
	if (mounts >= 0)
		close(mounts);
	return is_own;
}

/* What a row has to fit. */
struct mount_key {
	long id; /* 0: the device counts */
	unsigned major, minor;
};

static bool row_fits(const struct mount_row *row, const struct mount_key *key)
{
	return key->id ? row->id == key->id : row->major == key->major && row->minor == key->minor;
}

/* Return the row; NULL: there is none. */
static struct mount_row *table_find(const struct local_mounts *table, const struct mount_key *key)
{
	for (size_t i = 0; i < table->count; i++)
		if (row_fits(&table->rows[i], key))
			return &table->rows[i];
	return NULL;
}

/* Return whether the process has such a mount, which is local. */
static bool other_is_local(struct local_mounts *own_table, const struct mount_key *key, pid_t pid)
{
	struct local_mounts table;
	table_of(&table, pid);
	struct mount_row *row = table_find(&table, key);
	bool is_good = row && (has_local_type(row) || (is_local(own_table, row, 0) && has_mounts_of_own_users(pid)));
	table_free(&table);
	return is_good;
}

static bool key_is_local(const struct mount_key *key, pid_t pid)
{
	struct local_mounts *own_table = own_lock();
	struct mount_row *row = table_find(own_table, key);
	bool is_good = row ? is_local(own_table, row, 0) : pid && other_is_local(own_table, key, pid);
	own_unlock();
	return is_good;
}

/* ---- what is asked ---- */

int local_find(int directory, const char *path)
{
	const uint64_t within = directory < 0 ? RESOLVE_NO_SYMLINKS : path[0] == '/' ? RESOLVE_IN_ROOT : 0;
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS | within};
	int from = directory >= 0 ? directory : AT_FDCWD, fd = -1;
	/* Who renames or mounts meanwhile makes the kernel ask for another try. */
	for (int i = 0; i < FIND_TRIES && fd < 0; i++) {
		fd = (int)syscall(SYS_openat2, from, path, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	if (fd < 0 && errno == EINVAL) {
		how.resolve &= ~(uint64_t)RESOLVE_CACHED;
		fd = (int)syscall(SYS_openat2, from, path, &how, sizeof(how));
	}
	return fd < 0 ? -errno : fd;
}

/* Return the number of the mount that the descriptor's file was found in; 0: unknown. No file system is asked. Kernels
   before 5.8 have it in /proc alone. */
static long mount_id(int found)
{
	char path[40], text[256], *at;
	struct statx facts;
	if (statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &facts) == 0 &&
	    (facts.stx_mask & STATX_MNT_ID))
		return (long)facts.stx_mnt_id;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", found);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[size > 0 ? size : 0] = 0;
	at = strstr(text, "mnt_id:");
	return at ? strtol(at + strlen("mnt_id:"), NULL, 10) : 0;
}

/* Return whether the file is one of the kernel's own in memory (memfd_create()), whose mount is in no table. */
static bool is_in_memory(int found)
{
	struct statx facts;
	struct stat status;
	int fd = memfd_create("x", MFD_CLOEXEC);
	bool is_same = fd >= 0 && fstat(fd, &status) == 0 &&
		       statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &facts) == 0 &&
		       makedev(facts.stx_dev_major, facts.stx_dev_minor) == status.st_dev;
	if (fd >= 0)
		close(fd);
	return is_same;
}

bool local_is(int found, pid_t pid)
{
	const struct mount_key key = {.id = mount_id(found)};
	return key.id && (key_is_local(&key, pid) || is_in_memory(found));
}

bool local_has_device(pid_t pid, uint32_t major, uint32_t minor)
{
	return key_is_local(&(struct mount_key){.major = major, .minor = minor}, pid);
}
