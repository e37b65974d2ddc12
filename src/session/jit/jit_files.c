/* SPDX-License-Identifier: MIT */
#include "session/jit/jit_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "os/fd.h"
#include "os/local_files.h"
#include "os/monotonic.h"
#include "os/proc.h"

enum { DESCRIPTORS_MAX = 1024 /* of a process, that are looked at */ };

static int64_t realtime_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * (int64_t)NS_PER_S + time->tv_nsec;
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return realtime_ns(&time);
}

static uid_t user_of(pid_t pid)
{
	struct stat status;
	return stat(proc_path(pid, ".").text, &status) == 0 ? status.st_uid : (uid_t)-1;
}

struct jit_process jit_process_of(pid_t pid, pid_t inner)
{
	return (struct jit_process){.pid = pid,
				    .inner = inner,
				    .user = user_of(pid),
				    .since_ns = now_ns(CLOCK_REALTIME),
				    .is_ours = !proc_is_foreign(pid)};
}

void jit_process_refresh(struct jit_process *process)
{
	uint64_t start = proc_start_time(process->pid), hertz = (uint64_t)sysconf(_SC_CLK_TCK);
	uid_t user = user_of(process->pid);
	pid_t inner = start ? proc_inner_id(process->pid, process->pid) : 0;
	if (!start || user == (uid_t)-1 || inner <= 0)
		return;
	int64_t boot_ns = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME),
		start_ns = boot_ns + (int64_t)(start * (NS_PER_S / hertz));
	process->user = user;
	process->inner = inner;
	process->since_ns = start_ns < process->since_ns ? start_ns : process->since_ns;
}

/* Return whether the descriptor's file has this name behind all links. */
static bool has_name(int found, const char *name)
{
	char link[40], path[4096];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	const char *slash = strrchr(path, '/');
	return slash && !strcmp(slash + 1, name);
}

/* Open the directory that the process calls /. Return a descriptor, or -1. */
static int root_open(const struct jit_process *process)
{
	return open(proc_path(process->pid, "root").text, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Open the file that was found, if it may be the process's. Return a descriptor, or -1. */
static int found_open(const struct jit_process *process, int found, pid_t mounts_of, struct stat *status)
{
	int fd = local_is(found, mounts_of) ? file_open_found(found, status) : -1;
	/* Written since then; file systems count time coarsely. */
	if (fd >= 0 &&
	    (status->st_uid != process->user || realtime_ns(&status->st_mtim) < process->since_ns - (int64_t)NS_PER_S))
		fd_close(&fd);
	return fd < 0 ? -1 : fd;
}

int jit_map_open(const struct jit_process *process)
{
	char name[32], path[64];
	struct stat status;
	int root = root_open(process), fd = -1;
	snprintf(name, sizeof(name), "perf-%d.map", (int)process->inner);
	snprintf(path, sizeof(path), "/tmp/%s", name);
	/* The process is gone: its root was most likely this process's, if its pids were. */
	int found = root >= 0 || process->is_ours ? local_find(root, path) : -1;
	if (found >= 0 && has_name(found, name))
		fd = found_open(process, found, root >= 0 ? process->pid : 0, &status);
	fd_close(&found);
	fd_close(&root);
	return fd;
}

/* Whether the mapping is one by which a jitdump is announced: of code, and of a file with such a name. */
static bool is_announcement(const struct proc_map *map)
{
	const char *name = text_file_name(map->path);
	size_t length = strlen(name);
	return map->permissions[2] == 'x' && map->path[0] == '/' && !strncmp(name, "jit-", 4) && length > 5 &&
	       !strcmp(name + length - 5, ".dump");
}

int jit_dump_open(const struct jit_process *process)
{
	struct proc_map *maps = NULL;
	int count = proc_read_maps(process->pid, &maps), root = root_open(process), fd = -1;
	for (int i = 0; i < count && root >= 0 && fd < 0; i++) {
		struct stat status;
		int found = is_announcement(&maps[i]) ? local_find(root, maps[i].path) : -1;
		fd = found >= 0 ? found_open(process, found, process->pid, &status) : -1;
		if (fd >= 0 && status.st_ino != maps[i].inode)
			fd_close(&fd);
		fd_close(&found);
	}
	free(maps);
	fd_close(&root);
	return fd;
}

/* Whether the process's descriptor leads to a file of /tmp without a name. */
static bool is_nameless(const struct jit_process *process, const char *descriptor)
{
	static const char beginning[] = "/tmp/", end[] = " (deleted)";
	char link[sizeof(beginning) + NAME_MAX + sizeof(end)];
	ssize_t length = readlink(proc_path(process->pid, "fd/%s", descriptor).text, link, sizeof(link) - 1);
	link[length > 0 ? length : 0] = 0;
	return !strncmp(link, beginning, strlen(beginning)) && text_ends_with(link, end);
}

void jit_nameless_open(const struct jit_process *process, bool (*take)(void *of, int fd, const struct stat *status),
		       void *of)
{
	int directory = proc_open(process->pid, "fd", O_RDONLY | O_DIRECTORY);
	DIR *descriptors = directory < 0 ? NULL : fdopendir(directory);
	const struct dirent *entry;
	for (int i = 0; descriptors && i < DESCRIPTORS_MAX && (entry = readdir(descriptors)); i++) {
		struct stat status;
		if (!is_nameless(process, entry->d_name))
			continue;
		int found = open(proc_path(process->pid, "fd/%s", entry->d_name).text, O_PATH | O_CLOEXEC);
		int fd = found < 0 ? -1 : found_open(process, found, process->pid, &status);
		if (fd >= 0 && !take(of, fd, &status))
			fd_close(&fd);
		fd_close(&found);
	}
	if (descriptors)
		closedir(descriptors);
	else
		fd_close(&directory);
}
