/* SPDX-License-Identifier: MIT */
/** The files of regions: region.N in the session's directory. If that file system has no room, the file lies in a
    directory of its own elsewhere, and region.N links to it. */
#ifndef XHEAP_SESSION_REGION_FILES_H
#define XHEAP_SESSION_REGION_FILES_H

#include "region/region.h"
#include "session/directory/directory.h"

enum { REGION_FILE_PATH_BYTES = 512 };

/** Make the region `number` of the session and write its file's path. The last file system that is tried is that of
    trace_path. Return 0 or a negative errno, with the reason of the first failure. */
int region_file_make(struct region *region, char path[REGION_FILE_PATH_BYTES],
		     const struct session_directory *directory, uint32_t number, const char *trace_path,
		     const struct region_config *config, struct diag *diag);

/** Return whether the file lies outside the session's directory. */
bool region_file_is_elsewhere(const char *path, const char *directory);

/** Write the path of the file that region.N of the directory is or links to. */
void region_file_find(char path[REGION_FILE_PATH_BYTES], const char *directory, uint32_t number);

#endif
