/* SPDX-License-Identifier: MIT */
#include "os/mount_kind.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- file systems that may hang ---- */

enum file_system_kind {
	FILE_SYSTEM_EMPTY, /* the kernel, which has no programs there */
	FILE_SYSTEM_QUICK, /* the kernel and this machine's disks, or the machine's host */
	FILE_SYSTEM_SLOW,  /* another machine */
	FILE_SYSTEM_FUSE,  /* any process */
	FILE_SYSTEM_UNKNOWN
};

/* clang-format off */
#define TYPES(X) \
	X("proc", EMPTY) X("sysfs", EMPTY) X("cgroup", EMPTY) X("cgroup2", EMPTY) X("devpts", EMPTY) \
	X("securityfs", EMPTY) X("debugfs", EMPTY) X("tracefs", EMPTY) X("pstore", EMPTY) X("bpf", EMPTY) \
	X("configfs", EMPTY) X("fusectl", EMPTY) X("mqueue", EMPTY) X("binfmt_misc", EMPTY) X("nsfs", EMPTY) \
	X("efivarfs", EMPTY) X("selinuxfs", EMPTY) X("rpc_pipefs", EMPTY) X("nfsd", EMPTY) X("autofs", EMPTY) \
	X("resctrl", EMPTY) X("smackfs", EMPTY) \
	X("ext2", QUICK) X("ext3", QUICK) X("ext4", QUICK) X("xfs", QUICK) X("btrfs", QUICK) X("f2fs", QUICK) \
	X("bcachefs", QUICK) X("zfs", QUICK) X("tmpfs", QUICK) X("ramfs", QUICK) X("rootfs", QUICK) \
	X("devtmpfs", QUICK) X("hugetlbfs", QUICK) X("squashfs", QUICK) X("erofs", QUICK) X("cramfs", QUICK) \
	X("romfs", QUICK) X("iso9660", QUICK) X("udf", QUICK) X("vfat", QUICK) X("msdos", QUICK) X("exfat", QUICK) \
	X("ntfs", QUICK) X("ntfs3", QUICK) X("hfs", QUICK) X("hfsplus", QUICK) X("jfs", QUICK) X("nilfs2", QUICK) \
	X("reiserfs", QUICK) X("minix", QUICK) X("ufs", QUICK) X("ubifs", QUICK) X("jffs2", QUICK) \
	X("virtiofs", QUICK) \
	X("nfs", SLOW) X("nfs4", SLOW) X("cifs", SLOW) X("smb3", SLOW) X("ceph", SLOW) X("9p", SLOW) X("afs", SLOW) \
	X("fuse", FUSE) X("fuseblk", FUSE)
/* clang-format on */

static const struct {
	const char *name;
	enum file_system_kind kind;
} types[] = {
#define X(name, kind) {name, FILE_SYSTEM_##kind},
	TYPES(X)
#undef X
};

/* Return the kind of a type, which has `length` bytes. Of an overlay, whose layers decide, it is unknown. */
static enum file_system_kind file_system_kind(const char *type, size_t length)
{
	static const char fuse[] = "fuse.";
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i].name) == length && !memcmp(types[i].name, type, length))
			return types[i].kind;
	return length >= strlen(fuse) && !memcmp(type, fuse, strlen(fuse)) ? FILE_SYSTEM_FUSE : FILE_SYSTEM_UNKNOWN;
}

/* ---- types ---- */

static bool is_of_root(const struct mount *mount)
{
	static const char option[] = "user_id=0";
	const char *found = strstr(mount->options, option);
	return found && (!found[sizeof(option) - 1] || found[sizeof(option) - 1] == ',');
}

enum mount_kind mount_kind_of_type(const struct mount *mount, char why[MOUNT_WHY_BYTES])
{
	static const enum mount_kind kinds[] = {[FILE_SYSTEM_EMPTY] = MOUNT_EMPTY,
						[FILE_SYSTEM_QUICK] = MOUNT_QUICK,
						[FILE_SYSTEM_SLOW] = MOUNT_SLOW,
						[FILE_SYSTEM_FUSE] = MOUNT_FUSE,
						[FILE_SYSTEM_UNKNOWN] = MOUNT_SLOW};
	enum file_system_kind kind = file_system_kind(mount->type, strlen(mount->type));
	snprintf(why, MOUNT_WHY_BYTES, "%.30s: %s", mount->type,
		 kind == FILE_SYSTEM_UNKNOWN ? "its type is unknown" : "to open it may wait for a server");
	return kind == FILE_SYSTEM_FUSE && is_of_root(mount) ? MOUNT_SLOW : kinds[kind];
}

bool mount_is_root(const struct mount *mount)
{
	return !strcmp(mount->place, "/");
}

/* ---- layers ---- */

/* The kernel stacks two overlays, with 500 layers each. Who names more than that makes nobody look for ever. */
enum { DEPTH_MAX = 3, LAYERS_MAX = 2048 };

/* The judging of one mount, with all mounts below it. */
struct judgement {
	const struct mount_layers *layers;
	unsigned layer_count;
	const struct mount *quick[DEPTH_MAX + 1]; /* the last one that was found to be so, by depth */
	char *why;
};

/* What is known of an overlay by the layers that were judged. */
struct overlay {
	const struct mount *mount;
	int depth;
	bool has_lower, has_upper, has_relative;
};

static enum mount_kind judge(struct judgement *judgement, const struct mount *mount, int depth);

static enum mount_kind unknown_layer(struct judgement *judgement)
{
	snprintf(judgement->why, MOUNT_WHY_BYTES, "overlay: a layer of it is unknown");
	return MOUNT_UNKNOWN;
}

/* Return the mount on which the layer lies, or NULL. An overlay may hide its own layer: that of system extensions lies
   on /usr, and names /usr. */
static const struct mount *mount_of_layer(const struct mount_layers *layers, const struct mount *overlay,
					  const char *path)
{
	const struct mount *mount = layers->find(layers, path);
	for (int i = 0; i < DEPTH_MAX && mount && mount->device == overlay->device; i++)
		mount = mount_table_find(layers->table, mount->parent);
	return mount;
}

static enum mount_kind judge_layer(struct judgement *judgement, struct overlay *overlay, const char *path)
{
	int depth = overlay->depth;
	if (path[0] != '/') {
		overlay->has_relative = true;
		return judgement->layers->are_together ? MOUNT_QUICK : unknown_layer(judgement);
	}
	if (depth == DEPTH_MAX || ++judgement->layer_count > LAYERS_MAX)
		return unknown_layer(judgement);
	const struct mount *mount = mount_of_layer(judgement->layers, overlay->mount, path);
	if (mount && mount == judgement->quick[depth])
		return MOUNT_QUICK;
	enum mount_kind kind = mount ? judge(judgement, mount, depth + 1) : MOUNT_EMPTY;
	if (kind == MOUNT_EMPTY)
		return unknown_layer(judgement);
	char below[MOUNT_WHY_BYTES];
	memcpy(below, judgement->why, sizeof(below));
	if (kind > MOUNT_QUICK)
		snprintf(judgement->why, MOUNT_WHY_BYTES, "overlay on %.80s", below);
	else
		judgement->quick[depth] = mount;
	return kind;
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

/* Judge a list of layers. Two colons stand before layers of data. */
static enum mount_kind judge_list(struct judgement *judgement, struct overlay *overlay, char *list)
{
	enum mount_kind kind = MOUNT_QUICK;
	while (*list && kind == MOUNT_QUICK) {
		const char *layer = next_layer(&list);
		kind = *layer ? judge_layer(judgement, overlay, layer) : kind;
	}
	return kind;
}

static enum mount_kind judge_option(struct judgement *judgement, struct overlay *overlay, const char *name, char *value)
{
	static const struct {
		const char *name;
		bool is_lower, is_list;
	} names[] = {{"lowerdir", true, true},
		     {"lowerdir+", true, false},
		     {"datadir+", false, false},
		     {"upperdir", false, false}};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i].name) != 0)
			continue;
		overlay->has_lower |= names[i].is_lower;
		overlay->has_upper |= name[0] == 'u';
		mount_text_decode(value);
		return names[i].is_list ? judge_list(judgement, overlay, value)
					: judge_layer(judgement, overlay, value);
	}
	return MOUNT_QUICK;
}

static enum mount_kind judge_overlay(struct judgement *judgement, const struct mount *mount, int depth)
{
	struct overlay overlay = {.mount = mount, .depth = depth};
	char *text = strdup(mount->options), *rest = text, *value;
	enum mount_kind kind = MOUNT_QUICK;
	while (kind == MOUNT_QUICK && rest && (value = strsep(&rest, ","))) {
		const char *name = strsep(&value, "=");
		kind = value ? judge_option(judgement, &overlay, name, value) : kind;
	}
	free(text);
	bool is_whole = overlay.has_lower && (overlay.has_upper || !overlay.has_relative);
	return kind == MOUNT_QUICK && !is_whole ? unknown_layer(judgement) : kind;
}

static enum mount_kind judge(struct judgement *judgement, const struct mount *mount, int depth)
{
	return strcmp(mount->type, "overlay") ? mount_kind_of_type(mount, judgement->why)
					      : judge_overlay(judgement, mount, depth);
}

enum mount_kind mount_kind_of(const struct mount_layers *layers, const struct mount *mount, char why[MOUNT_WHY_BYTES])
{
	struct judgement judgement = {.layers = layers, .why = why};
	return judge(&judgement, mount, 0);
}
