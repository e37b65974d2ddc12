/* SPDX-License-Identifier: MIT */
#include "os/file_systems.h"

#include <string.h>

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

enum file_system_kind file_system_kind(const char *type, size_t length)
{
	static const char fuse[] = "fuse.";
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i].name) == length && !memcmp(types[i].name, type, length))
			return types[i].kind;
	return length >= strlen(fuse) && !memcmp(type, fuse, strlen(fuse)) ? FILE_SYSTEM_FUSE : FILE_SYSTEM_UNKNOWN;
}
