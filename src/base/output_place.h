/* SPDX-License-Identifier: MIT */
/** Where a file is written that the user has named. Other users may have put links on the way to it. */
#ifndef XHEAP_BASE_OUTPUT_PLACE_H
#define XHEAP_BASE_OUTPUT_PLACE_H

#include <limits.h>
#include <stdbool.h>

#include "base/diag.h"

/** A name in an open directory. */
struct output_place {
	int directory; /**< descriptor, O_PATH */
	char name[NAME_MAX + 1];
	/** the name leads to an open file of a process, as /proc/self/fd/1 does; otherwise it is no symbolic link */
	bool is_open_file;
};

/**
 * Find the place of a path, following links. A link of another user counts only on the way to a directory of that same
 * user; a link of this user or of root counts everywhere. Return 0, and the caller closes the directory; or a negative
 * errno with the reason in `diag`.
 */
int output_place_find(struct output_place *place, const char *path, struct diag *diag);

/** As output_place_find(), but refuse a link at the end of the path, whose ever it is. */
int output_place_find_unlinked(struct output_place *place, const char *path, struct diag *diag);

#endif
