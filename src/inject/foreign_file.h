/* SPDX-License-Identifier: MIT */
/**
 * Files that a traced process chose. Its user may have made the path, the mount, or the server behind it: to open a
 * device or a pipe has effects, and a file system may never answer.
 *
 *     local file of a disk or memory (os/local_files.h)  -> opened here, when its type is known
 *     any other file                                     -> a child opens and copies it (os/losable.h); the copy is
 *                                                           opened here; a child that hangs is left behind
 *
 * Each call waits FOREIGN_MS at most. All callers together wait FOREIGN_MINUTE_MS in a minute for the files of one
 * user; then that user's files fail at once.
 */
#ifndef XHEAP_INJECT_FOREIGN_FILE_H
#define XHEAP_INJECT_FOREIGN_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "os/proc.h"

enum { FOREIGN_MS = 1000, FOREIGN_MINUTE_MS = 4000 };

/** A file, opened for reading. */
struct foreign_file {
	int fd;             /**< the caller closes it */
	bool is_copy;       /**< fd is a copy in memory; device, inode and times are a file system's that may lie */
	struct stat status; /**< of the file; st_size is that of the copy, which is never root's */
};

/** Open the file that the process has mapped. It is searched for by its path, as this process sees it and as the other
    one does, and by the kernel's own links to it. with_any: if its inode is nowhere, the file at the path counts: a
    file system may show other inodes in maps than in files. Return 0 or a negative errno. */
int foreign_open_mapped(struct foreign_file *file, pid_t pid, const struct proc_map *map, bool with_any);

/** Return whether reading memory that the process has mapped from the file asks no server: the file is local. */
bool foreign_is_local(pid_t pid, const struct proc_map *map);

/** Open the file that the process executes. Return 0 or a negative errno. */
int foreign_open_executed(struct foreign_file *file, pid_t pid);

/** Open the file that the process calls `name`: below its root or, without a slash at the start, its current directory.
    Write the path where it is found. Return 0 or a negative errno. */
int foreign_open_named(struct foreign_file *file, pid_t pid, const char *name, char *path, size_t size);

/** As foreign_open_named(), and open nothing. Return 0 or a negative errno. */
int foreign_find_named(pid_t pid, const char *name, char *path, size_t size);

/** Return why a file could not be opened, as a static text that follows "all functions of FILE: ". */
const char *foreign_reason(int error);

#endif
