/* SPDX-License-Identifier: MIT */
/** Files that appear whole or not at all: they are written under a name of their own in the same directory, and renamed
    in the end. */
#ifndef XHEAP_BASE_WHOLE_FILE_H
#define XHEAP_BASE_WHOLE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/diag.h"

struct whole_file {
	int fd;     /**< to write to; -1: the caller has closed it */
	char *path; /**< of the whole file, with links resolved */
	/** its name until then; NULL: `path` is no regular file, which is written as it is */
	char *temporary;
};

/** Refuse an output that is one of the `count` files that are read, under any name: 0, or -EINVAL with the reason in
 *  diag. Paths that are NULL or lead nowhere are left out. */
int whole_file_check(const char *path, const char *const *read, unsigned count, struct diag *diag);

/** Whether the path leads to this file. */
bool whole_file_is(const char *path, const struct stat *status);

/** Begin. A file that is there keeps its mode; a new one gets this one, less the umask. 0, or a negative errno with the
    reason in diag. */
int whole_file_open(struct whole_file *file, const char *path, mode_t mode, struct diag *diag);

/** Put what was written in its place and close it: 0, or a negative errno with the reason in diag; then what was there
    before is still there. */
int whole_file_commit(struct whole_file *file, struct diag *diag);

/** Close it and leave everything as it was. */
void whole_file_abandon(struct whole_file *file);

#endif
