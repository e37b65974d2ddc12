/* SPDX-License-Identifier: MIT */
#include "inject/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "os/capabilities.h"
#include "os/fd.h"
#include "os/local_files.h"
#include "os/losable.h"

enum { WAYS_MAX = 5, WAY_BYTES = 4096, COPY_MAX = 512 << 20, COPY_CHUNK = 8 << 20 };

/* One way to a file. */
struct foreign_way {
	enum { BY_OWN_PATH, BY_PATH, BY_LINK_OF_PROC } kind;
	bool is_opened; /* not only found */
	uint64_t inode; /* that the file has to have; 0: any */
	uint32_t major, minor;
	char directory[40]; /* BY_PATH: what the path is relative to, or its root */
	char path[600];
};

/* What a child is asked. */
struct foreign_search {
	pid_t pid;
	uint32_t count;
	struct foreign_way ways[WAYS_MAX];
};

struct foreign_found {
	int error;
	struct stat status;
	char path[WAY_BYTES];
};

/* ---- ways ---- */

__attribute__((format(printf, 4, 5))) static struct foreign_way *way_add(struct foreign_search *search, int kind,
									 uint64_t inode, const char *format, ...)
{
	va_list arguments;
	struct foreign_way *way = &search->ways[search->count];
	*way = (struct foreign_way){.kind = kind, .inode = inode, .is_opened = true};
	va_start(arguments, format);
	int length = vsnprintf(way->path, sizeof(way->path), format, arguments);
	va_end(arguments);
	snprintf(way->directory, sizeof(way->directory), "/proc/%d/root", (int)search->pid);
	search->count += length < (int)sizeof(way->path);
	return way;
}

static void way_add_link(struct foreign_search *search, const struct proc_map *map, uint64_t inode, const char *name)
{
	struct foreign_way *way = way_add(search, BY_LINK_OF_PROC, inode, "/proc/%d/%s", (int)search->pid, name);
	way->major = map->device_major;
	way->minor = map->device_minor;
}

static void ways_to_mapped(struct foreign_search *search, const struct proc_map *map, bool with_any)
{
	char executed[sizeof(map->path)], name[64];
	way_add(search, BY_PATH, map->inode, "%s", map->path);
	if (map->high) {
		snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, map->low, map->high);
		way_add_link(search, map, map->inode, name);
	}
	/* The executed file may have been removed since. */
	proc_image(search->pid, executed, sizeof(executed));
	if (strcmp(executed, map->path) == 0)
		way_add_link(search, map, 0, "exe");
	if (with_any)
		way_add(search, BY_PATH, 0, "%s", map->path);
}

/* The link's device is asked of the maps. */
static bool way_to_executed(struct foreign_search *search)
{
	char executed[sizeof(((struct proc_map *)0)->path)];
	struct proc_map *maps = NULL;
	int count = proc_read_maps(search->pid, &maps);
	proc_image(search->pid, executed, sizeof(executed));
	for (int i = 0; i < count && !search->count; i++)
		if (maps[i].inode && strcmp(maps[i].path, executed) == 0)
			way_add_link(search, &maps[i], 0, "exe");
	free(maps);
	return search->count > 0;
}

static void way_to_named(struct foreign_search *search, const char *name, bool is_opened)
{
	struct foreign_way *way = way_add(search, BY_PATH, 0, "%s", name);
	way->is_opened = is_opened;
	if (name[0] != '/')
		snprintf(way->directory, sizeof(way->directory), "/proc/%d/cwd", (int)search->pid);
}

static void read_link(int found, char *path, size_t size)
{
	char link[40];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	ssize_t length = readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = 0;
}

/* Open what was found, if it is what the way leads to. Return a descriptor, 0 if none is wanted, or a negative
   errno. */
static int open_found(const struct foreign_way *way, int found, struct foreign_found *answer)
{
	if (fstat(found, &answer->status) != 0)
		return -errno;
	if (!S_ISREG(answer->status.st_mode))
		return -EINVAL;
	if (way->inode && answer->status.st_ino != way->inode)
		return -ENOENT;
	if (way->kind == BY_PATH && !way->inode)
		read_link(found, answer->path, sizeof(answer->path));
	return way->is_opened ? file_open_found(found, &answer->status) : 0;
}

/* Find what the way leads to, by a function like local_find(). Return an O_PATH descriptor or a negative errno. */
static int find_by(const struct foreign_way *way, int (*find)(int directory, const char *path))
{
	int directory = way->kind == BY_PATH ? open(way->directory, O_PATH | O_CLOEXEC) : -1;
	if (way->kind == BY_PATH && directory < 0)
		return -errno;
	int found = find(directory, way->path);
	fd_close(&directory);
	return found;
}

/* ---- in this process ---- */

/* Find the file without asking a file system. Return an O_PATH descriptor, or a negative errno; -EAGAIN: a child has to
   find it. */
static int find_here(const struct foreign_way *way, pid_t pid)
{
	int found;
	if (way->kind != BY_LINK_OF_PROC) {
		found = find_by(way, local_find);
	} else if (local_has_device(pid, way->major, way->minor)) {
		found = open(way->path, O_PATH | O_CLOEXEC);
		found = found < 0 ? -errno : found;
	} else {
		return -EAGAIN;
	}
	if (found < 0 || local_is(found, pid))
		return found;
	close(found);
	return -EAGAIN;
}

/* Return as open_found(); -EAGAIN: a child has to search. */
static int open_here(const struct foreign_search *search, struct foreign_found *answer)
{
	bool is_unknown = false;
	int fd = -ENOENT;
	for (uint32_t i = 0; i < search->count && fd < 0; i++) {
		int found = find_here(&search->ways[i], search->pid);
		is_unknown |= found == -EAGAIN;
		fd = found < 0 ? found : open_found(&search->ways[i], found, answer);
		fd_close(&found);
	}
	return fd < 0 && is_unknown ? -EAGAIN : fd;
}

/* ---- in a child ---- */

/* As local_find(), but file systems are asked, and links are passed. */
static int find_there(int directory, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = directory >= 0 && path[0] == '/' ? RESOLVE_IN_ROOT : 0};
	int found = (int)syscall(SYS_openat2, directory >= 0 ? directory : AT_FDCWD, path, &how, sizeof(how));
	return found < 0 ? -errno : found;
}

/* Return a copy in memory, or a negative errno. */
static int copy(int fd, struct stat *status)
{
	ssize_t moved = 1;
	off_t size = 0;
	int memory = memfd_create("xheap", MFD_CLOEXEC);
	while (memory >= 0 && moved > 0 && size < COPY_MAX) {
		moved = sendfile(memory, fd, NULL, COPY_CHUNK);
		size += moved > 0 ? moved : 0;
	}
	int error = memory < 0 || moved < 0 ? -errno : size >= COPY_MAX ? -EFBIG : 0;
	status->st_size = size;
	if (!error)
		return memory;
	fd_close(&memory);
	return error;
}

static void work(const struct losable_message *request, struct losable_message *answer)
{
	capabilities_keep(CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_READ_SEARCH) | CAPABILITY(CAP_SYS_ADMIN));
	struct foreign_search search;
	struct foreign_found *found = answer->bytes;
	int fd = -ENOENT;
	memcpy(&search, request->bytes, sizeof(search));
	memset(found, 0, sizeof(*found));
	for (uint32_t i = 0; i < search.count && fd < 0; i++) {
		int at = find_by(&search.ways[i], find_there);
		fd = at < 0 ? at : open_found(&search.ways[i], at, found);
		fd_close(&at);
	}
	answer->size = sizeof(*found);
	found->error = fd < 0 ? fd : 0;
	if (fd <= 0)
		return;
	int memory = copy(fd, &found->status);
	found->error = memory < 0 ? memory : 0;
	if (memory >= 0)
		answer->fds[answer->fd_count++] = memory;
	close(fd);
}

static struct losable opener = LOSABLE("xheap-opener", work, FOREIGN_MINUTE_MS);

static int ask(const struct foreign_search *search, struct foreign_found *found, struct foreign_file *file)
{
	uint32_t user = (uint32_t)proc_status_value(search->pid, "Uid");
	struct losable_message request = {.bytes = (void *)search, .size = sizeof(*search)};
	struct losable_message answer = {.bytes = found, .size = sizeof(*found)};
	int error = losable_ask(&opener, user, &request, &answer, FOREIGN_MS);
	if (!error)
		error = answer.size == sizeof(*found) ? found->error : -EPIPE;
	file->is_copy = true;
	/* A file system of a user may call its files anybody's. */
	found->status.st_uid = user ? user : (uid_t)-1;
	file->fd = answer.fd_count ? answer.fds[0] : -1;
	found->path[sizeof(found->path) - 1] = 0;
	return error || file->fd >= 0 || !search->ways[0].is_opened ? error : -EPIPE;
}

/* ---- what is asked ---- */

static int search_open(const struct foreign_search *search, struct foreign_file *file, struct foreign_found *found)
{
	*file = (struct foreign_file){.fd = -1};
	int fd = open_here(search, found), error = fd < 0 ? fd : 0;
	if (error == -EAGAIN)
		error = ask(search, found, file);
	else if (!error && search->ways[0].is_opened)
		file->fd = fd;
	file->status = found->status;
	return error;
}

int foreign_open_mapped(struct foreign_file *file, pid_t pid, const struct proc_map *map, bool with_any)
{
	struct foreign_search search = {.pid = pid};
	struct foreign_found found;
	way_add(&search, BY_OWN_PATH, map->inode, "%s", map->path);
	int fd = open_here(&search, &found);
	if (fd < 0) {
		ways_to_mapped(&search, map, with_any);
		return search_open(&search, file, &found);
	}
	*file = (struct foreign_file){.fd = fd, .status = found.status};
	return 0;
}

bool foreign_is_local(pid_t pid, const struct proc_map *map)
{
	struct foreign_search search = {.pid = pid};
	struct foreign_found found;
	if (local_has_device(pid, map->device_major, map->device_minor))
		return true;
	/* A file system with more devices than its mount. */
	ways_to_mapped(&search, map, false);
	int fd = open_here(&search, &found);
	bool is_local = fd >= 0;
	fd_close(&fd);
	return is_local;
}

int foreign_open_executed(struct foreign_file *file, pid_t pid)
{
	struct foreign_search search = {.pid = pid};
	struct foreign_found found;
	*file = (struct foreign_file){.fd = -1};
	return way_to_executed(&search) ? search_open(&search, file, &found) : -ENOENT;
}

static int open_named(struct foreign_file *file, pid_t pid, const char *name, bool is_opened, char *path, size_t size)
{
	struct foreign_search search = {.pid = pid};
	struct foreign_found found = {.path = ""};
	way_to_named(&search, name, is_opened);
	int error = search.count ? search_open(&search, file, &found) : -ENAMETOOLONG;
	if (!error)
		snprintf(path, size, "%s", found.path);
	return error;
}

int foreign_open_named(struct foreign_file *file, pid_t pid, const char *name, char *path, size_t size)
{
	*file = (struct foreign_file){.fd = -1};
	return open_named(file, pid, name, true, path, size);
}

int foreign_find_named(pid_t pid, const char *name, char *path, size_t size)
{
	struct foreign_file file;
	return open_named(&file, pid, name, false, path, size);
}

const char *foreign_reason(int error)
{
	static const struct {
		int error;
		const char *reason;
	} reasons[] = {
		{-ETIMEDOUT, "its file system does not answer"},
		{-EBUSY, "file systems of its user did not answer before"},
		{-EINVAL, "it is no regular file"},
		{-EFBIG, "it is too large to be copied from its file system"},
	};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].error == error)
			return reasons[i].reason;
	return "the file cannot be read";
}
