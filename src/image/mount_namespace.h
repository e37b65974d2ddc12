/* SPDX-License-Identifier: MIT */
/** A mount namespace: looking up its files, and judging its file systems, without waiting for a stranger. */
#ifndef XHEAP_IMAGE_MOUNT_NAMESPACE_H
#define XHEAP_IMAGE_MOUNT_NAMESPACE_H

#include <stdbool.h>

#include "os/mount_kind.h"

/** What is looked up in this process's namespace: one that takes too long keeps none of another kind from being found.
 */
enum mount_walk_kind { MOUNT_WALK_SYSTEM, MOUNT_WALK_OPTION, MOUNT_WALK_LINK };

/** Zero it for the namespace of this process. */
struct mount_namespace {
	uint64_t inode;             /**< of the namespace; 0: that of this process */
	pid_t pid;                  /**< a process there; 0: this one */
	enum mount_walk_kind walks; /**< in the namespace of this process */
	struct mount_table table;
};

/** Judge the file system of a row of the namespace's table, and those below it if it has layers. What is unknown counts
    as slow. Write why it is slow. */
enum mount_kind mount_judge(const struct mount_namespace *space, const struct mount *mount, char why[MOUNT_WHY_BYTES]);

/** Return whether the machine runs from this mount: it is the root of this process's namespace. Nobody else has mounted
    it, and whatever looks a file up waits for it anyway. */
bool mount_is_own_root(const struct mount_namespace *space, const struct mount *mount);

/** Return whether programs may lie on it, by its type. */
bool mount_has_programs(const struct mount *mount);

/** Judge the file system on which an open file lies. */
enum mount_kind mount_judge_file(const struct mount_namespace *space, int fd, char why[MOUNT_WHY_BYTES]);

/** Look up the path below the namespace's root, through links or not, and never a magic link. Another process does
    that, and is lost when it takes too long. Return a descriptor that was opened by O_PATH, or a negative errno. */
int mount_walk(const struct mount_namespace *space, const char *path, bool follows_links);

/** A file that was looked up. */
struct mount_file {
	char path[4096]; /**< without links */
	dev_t device;    /**< with the inode: of the file */
	ino_t inode;
	mode_t mode;
};

/** Describe a file that was looked up, by what the kernel knows without asking a server. Return false if it is gone. */
bool mount_file_status(int fd, struct mount_file *file);

/** Look up the path in this process's namespace and describe its file. Return false if that fails. */
bool mount_file_find(enum mount_walk_kind kind, const char *path, struct mount_file *file);

/** Return a text for an error of mount_walk(). */
const char *mount_walk_error(int error);

/** Return how many look-ups have taken too long so far. */
uint64_t mount_walks_lost(void);

/** Let the processes end that look up paths. */
void mount_walk_end(void);

#endif
