/* SPDX-License-Identifier: MIT */
#include "image/mount_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/losable.h"

/* How long a look-up may take. A busy machine may need that. */
enum { WALK_MS = 250 };

/* Of lost look-ups in other namespaces, beside the kinds of this one. */
enum { WALK_OTHERS = MOUNT_WALK_LINK + 1 };

/* ---- looking up ---- */

struct walk_request {
	pid_t pid;
	bool follows_links;
	char path[PATH_MAX];
};

static int open_below(int root, const struct walk_request *walk)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | (walk->follows_links ? 0 : O_NOFOLLOW),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
					  (walk->follows_links ? 0 : RESOLVE_NO_SYMLINKS)};
	int fd = (int)syscall(SYS_openat2, root, walk->path, &how, sizeof(how));
	/* A kernel before 5.6. Only in this namespace nobody else makes the links on the way. */
	return fd < 0 && errno == ENOSYS && !walk->pid ? open(walk->path, (int)how.flags) : fd;
}

/* In a process that can be lost. */
static void answer_walk(const struct losable_message *request, struct losable_message *answer)
{
	struct walk_request *walk = request->bytes;
	char path[64];
	snprintf(path, sizeof(path), walk->pid ? "/proc/%d/root" : "/", (int)walk->pid);
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = root < 0 ? -1 : open_below(root, walk);
	int error = fd < 0 ? -errno : 0;
	if (root >= 0)
		close(root);
	if (fd >= 0)
		answer->fds[answer->fd_count++] = fd;
	memcpy(answer->bytes, &error, sizeof(error));
	answer->size = sizeof(error);
}

static struct losable walkers = LOSABLE("xheap-walker", answer_walk, 0);
static uint64_t lost;

int mount_walk(const struct mount_namespace *space, const char *path, bool follows_links)
{
	struct walk_request walk = {.pid = space->pid, .follows_links = follows_links};
	int error = 0;
	struct losable_message request = {.bytes = &walk}, answer = {.bytes = &error, .size = sizeof(error)};
	if ((size_t)snprintf(walk.path, sizeof(walk.path), "%s", path) >= sizeof(walk.path))
		return -ENAMETOOLONG;
	request.size = offsetof(struct walk_request, path) + strlen(path) + 1;
	uint32_t key = space->pid ? WALK_OTHERS : (uint32_t)space->walks;
	int failure = losable_ask(&walkers, key, &request, &answer, WALK_MS);
	lost += failure == -ETIMEDOUT || failure == -EBUSY;
	if (failure || answer.fd_count != 1)
		return failure ? failure : error ? error : -EIO;
	return answer.fds[0];
}

uint64_t mount_walks_lost(void)
{
	return lost;
}

void mount_walk_end(void)
{
	losable_end(&walkers);
}

const char *mount_walk_error(int error)
{
	return error == -ETIMEDOUT || error == -EBUSY ? "to look it up takes too long" : strerror(-error);
}

bool mount_file_status(int fd, struct mount_file *file)
{
	char link[64];
	struct statx status;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, file->path, sizeof(file->path) - 1);
	file->path[length > 0 ? length : 0] = 0;
	if (length <= 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &status) != 0)
		return false;
	file->device = makedev(status.stx_dev_major, status.stx_dev_minor);
	file->inode = status.stx_ino;
	file->mode = status.stx_mode;
	return true;
}

bool mount_file_find(enum mount_walk_kind kind, const char *path, struct mount_file *file)
{
	const struct mount_namespace own = {.walks = kind};
	int fd = mount_walk(&own, path, true);
	bool is_found = fd >= 0 && mount_file_status(fd, file);
	if (fd >= 0)
		close(fd);
	return is_found;
}

/* ---- judging ---- */

bool mount_has_programs(const struct mount *mount)
{
	char why[MOUNT_WHY_BYTES];
	return mount_kind_of_type(mount, why) != MOUNT_EMPTY;
}

static const struct mount *find_layer(const struct mount_layers *layers, const char *path)
{
	int fd = mount_walk(layers->context, path, true);
	const struct mount *mount = fd < 0 ? NULL : mount_table_find(layers->table, mount_id_of(fd));
	if (fd >= 0)
		close(fd);
	return mount;
}

bool mount_is_own_root(const struct mount_namespace *space, const struct mount *mount)
{
	return !space->pid && mount_is_root(mount);
}

/* The layers of the root were named before it was the root: a live system, a container with a watcher of its own. */
enum mount_kind mount_judge(const struct mount_namespace *space, const struct mount *mount, char why[MOUNT_WHY_BYTES])
{
	const struct mount_layers layers = {.table = &space->table, .find = find_layer, .context = space};
	enum mount_kind kind = mount_kind_of(&layers, mount, why);
	if (kind != MOUNT_UNKNOWN)
		return kind;
	return mount_is_own_root(space, mount) ? MOUNT_QUICK : MOUNT_SLOW;
}

enum mount_kind mount_judge_file(const struct mount_namespace *space, int fd, char why[MOUNT_WHY_BYTES])
{
	const struct mount *mount = mount_table_find(&space->table, mount_id_of(fd));
	snprintf(why, MOUNT_WHY_BYTES, "its file system is unknown");
	return mount ? mount_judge(space, mount, why) : MOUNT_SLOW;
}
