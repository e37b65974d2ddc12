/* SPDX-License-Identifier: MIT */
/**
 * Where the files of regions lie: region.N in the session's directory. Where that file system has no room, the file
 * lies in a directory of its own on another one, and region.N is a link to it.
 */
#ifndef XHEAP_SESSION_REGION_FILES_H
#define XHEAP_SESSION_REGION_FILES_H

#include "region/region.h"
#include "session/directory.h"

enum { REGION_FILE_PATH_BYTES = 512 };

/** Make the region `number` of the session. trace_path: its directory is the last place that is tried. path: of the
 *  file itself. 0 or a negative errno, with the reason of the first failure. */
int region_file_make(struct region *region, char path[REGION_FILE_PATH_BYTES],
		     const struct session_directory *directory, uint32_t number, const char *trace_path,
		     const struct region_config *config, struct diag *diag);

/** Whether the file lies outside of the session's directory. */
bool region_file_is_elsewhere(const char *path, const char *directory);

/** Find the file of a region: what region.N of the directory leads to. */
void region_file_find(char path[REGION_FILE_PATH_BYTES], const char *directory, uint32_t number);

#endif
