/* SPDX-License-Identifier: MIT */
/** Files that appear whole or not at all: they are written under a temporary name in the same directory, then
    renamed. If a signal ends the program before (base/signal_cleanup.h), the temporary file is removed. */
#ifndef XHEAP_BASE_WHOLE_FILE_H
#define XHEAP_BASE_WHOLE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/diag.h"

/** A file under construction. */
struct whole_file {
	int fd;     /**< to write to; -1: the caller has closed it */
	char *path; /**< of the whole file, with links resolved */
	/** its temporary name; NULL: `path` is no regular file and is written directly */
	char *temporary;
};

/** Refuse an output that is one of the `count` input files, under any name. NULL paths and missing files are skipped.
    Return 0, or -EINVAL with the reason in `diag`. */
int whole_file_check(const char *path, const char *const *read, unsigned count, struct diag *diag);

/** Return whether the path leads to this file. */
bool whole_file_is(const char *path, const struct stat *status);

/** Begin. An existing file keeps its mode; a new one gets `mode`, less the umask. Return 0, or a negative errno with
    the reason in `diag`. */
int whole_file_open(struct whole_file *file, const char *path, mode_t mode, struct diag *diag);

/** Move the file to its path and close it. Return 0, or a negative errno with the reason in `diag`; then the former
    file remains. */
int whole_file_commit(struct whole_file *file, struct diag *diag);

/** Close and remove the temporary file; the former file remains. */
void whole_file_abandon(struct whole_file *file);

#endif
