/* SPDX-License-Identifier: MIT */
/** Files that appear whole or not at all: they are written under a temporary name in the same directory, then
    renamed. If a signal ends the program before, and it has a guard for that, the temporary file is removed. */
#ifndef XHEAP_BASE_WHOLE_FILE_H
#define XHEAP_BASE_WHOLE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/output_place.h"

/** How a program removes what must not stay when a signal ends it (base/signal_cleanup.h). */
struct whole_file_guard {
	void (*hold)(void);
	void (*release)(void);
	void (*add)(void (*undo)(const void *context), const void *context);
	void (*remove)(const void *context);
};

/** Use a guard from now on. A library leaves the signals of its program alone, and sets none. */
void whole_file_set_guard(const struct whole_file_guard *guard);

/** A file under construction. */
struct whole_file {
	int fd;                    /**< to write to; -1: the caller has closed it */
	struct output_place place; /**< of the whole file, if `path` is set */
	char *path;                /**< of the whole file, with links resolved */
	/** its temporary name; NULL: `path` is no regular file and is written directly */
	char *temporary;
};

/** Refuse an output that is one of the `count` input files, under any name. NULL paths and missing files are skipped.
    Return 0, or -EINVAL with the reason in `diag`. */
int whole_file_check(const char *path, const char *const *read, unsigned count, struct diag *diag);

/** Return whether the path leads to this file. */
bool whole_file_is(const char *path, const struct stat *status);

/** Begin. The file gets `mode`, less the umask. Links and pipes of other users are refused, and files of theirs
    in directories that not only this user may change. Return 0, or a negative errno with the reason in `diag`. */
int whole_file_open(struct whole_file *file, const char *path, mode_t mode, struct diag *diag);

/** As whole_file_open(), but an existing file keeps its mode: for texts, and for a file that is written anew. */
int whole_file_open_as_is(struct whole_file *file, const char *path, mode_t mode, struct diag *diag);

/** Move the file to its path and close it. Return 0, or a negative errno with the reason in `diag`; then the former
    file remains. */
int whole_file_commit(struct whole_file *file, struct diag *diag);

/** Close and remove the temporary file; the former file remains. */
void whole_file_abandon(struct whole_file *file);

#endif
