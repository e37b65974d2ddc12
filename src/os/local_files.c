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

#include "os/mount_kind.h"
#include "os/proc.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

enum { FIND_TRIES = 8 };

/* ---- this process's mounts ---- */

/* Read anew when the kernel says that they have changed. */
struct own_mounts {
	pthread_mutex_t lock;
	pid_t pid; /* a forked process has a table of its own */
	int fd;
	struct mount_table table;
	unsigned char *kinds; /* of each row: its kind and one, 0: not asked yet */
};

static struct own_mounts own = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static void own_forget(void)
{
	mount_table_fini(&own.table);
	free(own.kinds);
	own.kinds = NULL;
}

static void own_lock(void)
{
	pthread_mutex_lock(&own.lock);
	if (own.pid != getpid()) {
		/* The parent's descriptor stays: this process may have closed it, and have another file there. */
		own_forget();
		own.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		own.pid = getpid();
	}
	struct pollfd changes = {.fd = own.fd, .events = POLLPRI};
	if (own.fd < 0 || (poll(&changes, 1, 0) == 0 && own.kinds))
		return;
	own_forget();
	if (mount_table_read_file(&own.table, own.fd, MOUNT_TABLE_MAX) == 0)
		own.kinds = calloc(own.table.count + 1, 1);
	if (!own.kinds)
		own_forget();
}

static void own_unlock(void)
{
	pthread_mutex_unlock(&own.lock);
}

/* ---- judging ---- */

static const struct mount *find_layer(const struct mount_layers *layers, const char *path)
{
	return mount_table_above(layers->table, path);
}

/* Layers are looked for in this process's table: it is from there that container engines mount. */
static enum mount_kind kind_of(const struct mount *mount)
{
	const struct mount_layers layers = {.table = &own.table, .find = find_layer, .are_together = true};
	char why[MOUNT_WHY_BYTES];
	return mount_kind_of(&layers, mount, why);
}

/* Return whether a row of this process's table is local. The layers of its root were named before it was the root, and
   whatever looks a file up waits for it anyway. */
static bool own_is_local(const struct mount *mount)
{
	unsigned char *known = &own.kinds[mount - own.table.rows];
	if (!*known)
		*known = (unsigned char)(kind_of(mount) + 1);
	enum mount_kind kind = (enum mount_kind)(*known - 1);
	return kind == MOUNT_QUICK || (kind == MOUNT_UNKNOWN && mount_is_root(mount));
}

/* Return whether the process's mounts are made with this process's rights: by root of this user namespace, and by
   nobody who is root only in one of their own. */
static bool has_mounts_of_own_users(pid_t pid)
{
	struct stat own_users, users;
	int mounts = proc_open(pid, "ns/mnt", O_RDONLY);
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
	uint32_t id; /* 0: the device counts */
	uint64_t device;
};

/* Return the row; NULL: there is none. */
static const struct mount *table_find(const struct mount_table *table, const struct mount_key *key)
{
	for (size_t i = 0; i < table->count; i++)
		if (key->id ? table->rows[i].id == key->id : table->rows[i].device == key->device)
			return &table->rows[i];
	return NULL;
}

/* Return whether the process has such a mount, which is local. */
static bool other_is_local(const struct mount_key *key, pid_t pid)
{
	struct mount_table table;
	char why[MOUNT_WHY_BYTES];
	mount_table_read(&table, pid, MOUNT_TABLE_MAX);
	const struct mount *mount = table_find(&table, key);
	bool is_good = mount && (mount_kind_of_type(mount, why) == MOUNT_QUICK ||
				 (kind_of(mount) == MOUNT_QUICK && has_mounts_of_own_users(pid)));
	mount_table_fini(&table);
	return is_good;
}

static bool key_is_local(const struct mount_key *key, pid_t pid)
{
	own_lock();
	const struct mount *mount = table_find(&own.table, key);
	bool is_good = mount ? own_is_local(mount) : pid && other_is_local(key, pid);
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

/* Return whether it is the device of the kernel's own files in memory (memfd_create()), whose mount is in no table.
   False: it is another one, or that device is unknown. */
static bool is_memory_device(uint64_t device)
{
	struct stat status;
	int fd = memfd_create("x", MFD_CLOEXEC);
	bool is_known = fd >= 0 && fstat(fd, &status) == 0;
	if (fd >= 0)
		close(fd);
	return is_known && device == mount_device(major(status.st_dev), minor(status.st_dev));
}

static bool is_in_memory(int found)
{
	struct statx facts;
	return statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &facts) == 0 &&
	       is_memory_device(mount_device(facts.stx_dev_major, facts.stx_dev_minor));
}

bool local_is(int found, pid_t pid)
{
	const struct mount_key key = {.id = mount_id_of(found)};
	return key.id && (key_is_local(&key, pid) || is_in_memory(found));
}

bool local_has_device(pid_t pid, uint32_t major, uint32_t minor)
{
	const uint64_t device = mount_device(major, minor);
	return key_is_local(&(struct mount_key){.device = device}, pid) || is_memory_device(device);
}
