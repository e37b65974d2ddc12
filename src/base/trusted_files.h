/* SPDX-License-Identifier: MIT */
/** Directories of settings that a service of root reads: what is trusted in them, and how their files are written.
    A file is trusted if it belongs to root or the caller, and nobody else may write to it. */
#ifndef XHEAP_BASE_TRUSTED_FILES_H
#define XHEAP_BASE_TRUSTED_FILES_H

#include <stdio.h>
#include <sys/stat.h>

#include "base/diag.h"

/** What the names of settings end with. */
#define TRUSTED_SUFFIX ".conf"

/** The environment's name of a directory before all paths of settings, for tests. It counts only if the directory
    belongs to the caller, and nobody else may write to it. */
#define TRUSTED_ROOT_VARIABLE "XHEAP_IMAGE_ROOT"

/** Return the directory before all paths of settings; "": none is set. */
const char *trusted_root(void);

/** Return why a file or directory cannot be trusted, a static text; NULL: it can. */
const char *trusted_doubt(const struct stat *status);

/** Make the directory, with this mode, and those above it. Return 0; or a negative errno, also if it was there and is
    not trusted. */
int trusted_directory_make(const char *path, mode_t mode, struct diag *diag);

/** Call visit for each file of the directory whose name ends with TRUSTED_SUFFIX, in the order of names; `directory`
    is a descriptor. A missing directory has no files. Return 0; or a negative errno, also if the directory is not
    trusted. */
int trusted_files_visit(const char *path, void (*visit)(void *cookie, int directory, const char *name), void *cookie,
			struct diag *diag);

/** Open a file of the directory to read it, which the caller closes; `path` is for messages. Return 0; or a negative
    errno if it cannot be opened, is no regular file or not trusted. */
int trusted_file_open(int directory, const char *name, const char *path, FILE **file, struct diag *why);

/** Write a file of the directory, whole or not at all, with mode 0644; print writes its content. The directory is made
    if it is missing. The file survives a power loss. Return 0 or a negative errno. */
int trusted_file_write(const char *directory_path, const char *name, void (*print)(const void *content, FILE *file),
		       const void *content, struct diag *diag);

/** Remove a file of the directory. It stays removed after a power loss. Return 0 or a negative errno. */
int trusted_file_remove(const char *directory_path, const char *name, struct diag *diag);

#endif
