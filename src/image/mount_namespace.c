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

/* A lost look-up in one namespace keeps those in the other from none. */
enum walk_key { WALK_OWN, WALK_OTHERS };

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

static struct losable walkers = LOSABLE("xheap-walker", answer_walk);
static uint64_t lost;

int mount_walk(const struct mount_namespace *space, const char *path, bool follows_links)
{
	struct walk_request walk = {.pid = space->pid, .follows_links = follows_links};
	int error = 0;
	struct losable_message request = {.bytes = &walk}, answer = {.bytes = &error, .size = sizeof(error)};
	if ((size_t)snprintf(walk.path, sizeof(walk.path), "%s", path) >= sizeof(walk.path))
		return -ENAMETOOLONG;
	request.size = offsetof(struct walk_request, path) + strlen(path) + 1;
	int failure = losable_ask(&walkers, space->pid ? WALK_OTHERS : WALK_OWN, &request, &answer, WALK_MS);
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

bool mount_file_find(const char *path, struct mount_file *file)
{
	static const struct mount_namespace own;
	int fd = mount_walk(&own, path, true);
	bool is_found = fd >= 0 && mount_file_status(fd, file);
	if (fd >= 0)
		close(fd);
	return is_found;
}

uint32_t mount_id_of(int fd)
{
	char path[64], text[512];
	unsigned id = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	int info = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = info < 0 ? 0 : read(info, text, sizeof(text) - 1);
	if (info >= 0)
		close(info);
	text[got > 0 ? got : 0] = 0;
	const char *found = strstr(text, "mnt_id:");
	return found && sscanf(found, "mnt_id: %u", &id) == 1 ? id : 0;
}

/* ---- types ---- */

/* X(type, kind): other types are unknown. */
/* clang-format off */
#define TYPES(X) \
	X("proc", EMPTY) X("sysfs", EMPTY) X("cgroup", EMPTY) X("cgroup2", EMPTY) X("devpts", EMPTY) \
	X("securityfs", EMPTY) X("debugfs", EMPTY) X("tracefs", EMPTY) X("pstore", EMPTY) X("bpf", EMPTY) \
	X("configfs", EMPTY) X("fusectl", EMPTY) X("mqueue", EMPTY) X("hugetlbfs", EMPTY) X("binfmt_misc", EMPTY) \
	X("nsfs", EMPTY) X("efivarfs", EMPTY) X("selinuxfs", EMPTY) X("rpc_pipefs", EMPTY) X("nfsd", EMPTY) \
	X("autofs", EMPTY) X("resctrl", EMPTY) X("smackfs", EMPTY) \
	X("ext2", QUICK) X("ext3", QUICK) X("ext4", QUICK) X("xfs", QUICK) X("btrfs", QUICK) X("f2fs", QUICK) \
	X("bcachefs", QUICK) X("zfs", QUICK) X("tmpfs", QUICK) X("ramfs", QUICK) X("rootfs", QUICK) \
	X("devtmpfs", QUICK) X("squashfs", QUICK) X("erofs", QUICK) X("cramfs", QUICK) X("romfs", QUICK) \
	X("iso9660", QUICK) X("udf", QUICK) X("vfat", QUICK) X("msdos", QUICK) X("exfat", QUICK) X("ntfs", QUICK) \
	X("ntfs3", QUICK) X("hfs", QUICK) X("hfsplus", QUICK) X("jfs", QUICK) X("nilfs2", QUICK) X("reiserfs", QUICK) \
	X("minix", QUICK) X("ubifs", QUICK) X("jffs2", QUICK) \
	/* Its server is the machine's host. */ \
	X("virtiofs", QUICK) \
	X("nfs", SLOW) X("nfs4", SLOW) X("cifs", SLOW) X("smb3", SLOW) X("ceph", SLOW) X("9p", SLOW) X("afs", SLOW) \
	X("fuse", FUSE) X("fuseblk", FUSE)
/* clang-format on */

static const struct {
	const char *name;
	enum mount_kind kind;
} types[] = {
#define X(name, kind) {name, MOUNT_##kind},
	TYPES(X)
#undef X
};

static bool is_of_root(const struct mount *mount)
{
	static const char option[] = "user_id=0";
	const char *found = strstr(mount->options, option);
	return found && (!found[sizeof(option) - 1] || found[sizeof(option) - 1] == ',');
}

static enum mount_kind kind_of_type(const struct mount *mount, char why[MOUNT_WHY_BYTES])
{
	const char *type = mount->type;
	bool is_known = !strncmp(type, "fuse.", 5);
	enum mount_kind kind = is_known ? MOUNT_FUSE : MOUNT_SLOW;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(types[i].name, type)) {
			kind = types[i].kind;
			is_known = true;
		}
	if (kind == MOUNT_FUSE && is_of_root(mount))
		kind = MOUNT_SLOW;
	snprintf(why, MOUNT_WHY_BYTES, "%.30s: %s", type,
		 is_known ? "to open it may wait for a server" : "its type is unknown");
	return kind;
}

bool mount_has_programs(const struct mount *mount)
{
	char why[MOUNT_WHY_BYTES];
	return kind_of_type(mount, why) != MOUNT_EMPTY;
}

/* ---- layers ---- */

/* The kernel stacks two. */
enum { DEPTH_MAX = 3 };

static enum mount_kind judge(const struct mount_namespace *space, const struct mount *mount, int depth,
			     char why[MOUNT_WHY_BYTES]);

/* Only root can have laid the root of this process, whose layers often lie in no namespace any more. */
static enum mount_kind unknown_layer(const struct mount_namespace *space, const struct mount *overlay,
				     char why[MOUNT_WHY_BYTES])
{
	if (!space->pid && !strcmp(overlay->place, "/"))
		return MOUNT_QUICK;
	snprintf(why, MOUNT_WHY_BYTES, "overlay: a layer of it is unknown");
	return MOUNT_SLOW;
}

static enum mount_kind judge_layer(const struct mount_namespace *space, const struct mount *overlay, const char *path,
				   int depth, char why[MOUNT_WHY_BYTES])
{
	char below[MOUNT_WHY_BYTES];
	int fd = path[0] == '/' ? mount_walk(space, path, true) : -1;
	const struct mount *mount = fd < 0 ? NULL : mount_table_find(&space->table, mount_id_of(fd));
	if (fd >= 0)
		close(fd);
	if (!mount || depth == DEPTH_MAX)
		return unknown_layer(space, overlay, why);
	enum mount_kind kind = judge(space, mount, depth + 1, below);
	if (kind > MOUNT_QUICK)
		snprintf(why, MOUNT_WHY_BYTES, "overlay on %.80s", below);
	return kind > MOUNT_QUICK ? kind : MOUNT_QUICK;
}

/* Cut the first path off a list of layers: ':' separates them, and '\' stands before one that is meant. */
static char *next_layer(char **rest)
{
	char *first = *rest, *to = first, *at = first;
	for (; *at && *at != ':'; at++)
		*to++ = *at == '\\' && at[1] ? *++at : *at;
	*rest = *at ? at + 1 : at;
	*to = 0;
	return first;
}

/* An option that names one layer, or a list of them. */
static enum mount_kind judge_option(const struct mount_namespace *space, const struct mount *overlay, char *value,
				    bool is_list, int depth, char why[MOUNT_WHY_BYTES])
{
	enum mount_kind kind = MOUNT_QUICK;
	if (!is_list)
		return judge_layer(space, overlay, value, depth, why);
	while (*value && kind == MOUNT_QUICK) {
		const char *layer = next_layer(&value);
		/* Two colons stand before layers of data. */
		kind = *layer ? judge_layer(space, overlay, layer, depth, why) : kind;
	}
	return kind;
}

static enum mount_kind judge_overlay(const struct mount_namespace *space, const struct mount *mount, int depth,
				     char why[MOUNT_WHY_BYTES])
{
	static const char *const names[] = {"lowerdir", "lowerdir+", "datadir+", "upperdir"};
	char *text = strdup(mount->options), *rest = text, *value;
	enum mount_kind kind = MOUNT_QUICK;
	bool has_lower = false;
	while (kind == MOUNT_QUICK && rest && (value = strsep(&rest, ","))) {
		const char *name = strsep(&value, "=");
		for (size_t i = 0; value && i < sizeof(names) / sizeof(*names); i++)
			if (!strcmp(name, names[i])) {
				mount_text_decode(value);
				kind = judge_option(space, mount, value, i == 0, depth, why);
				has_lower |= i < 2;
				break;
			}
	}
	free(text);
	return kind == MOUNT_QUICK && !has_lower ? unknown_layer(space, mount, why) : kind;
}

static enum mount_kind judge(const struct mount_namespace *space, const struct mount *mount, int depth,
			     char why[MOUNT_WHY_BYTES])
{
	return strcmp(mount->type, "overlay") ? kind_of_type(mount, why) :
						judge_overlay(space, mount, depth, why);
}

enum mount_kind mount_judge(const struct mount_namespace *space, const struct mount *mount, char why[MOUNT_WHY_BYTES])
{
	return judge(space, mount, 0, why);
}

enum mount_kind mount_judge_file(const struct mount_namespace *space, int fd, char why[MOUNT_WHY_BYTES])
{
	const struct mount *mount = mount_table_find(&space->table, mount_id_of(fd));
	snprintf(why, MOUNT_WHY_BYTES, "its file system is unknown");
	return mount ? mount_judge(space, mount, why) : MOUNT_SLOW;
}
