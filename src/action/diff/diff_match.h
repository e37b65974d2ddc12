/* SPDX-License-Identifier: MIT */
/** What keeps the rows of two sides from matching: other programs, and other builds of images without symbols. */
#ifndef XHEAP_ACTION_DIFF_MATCH_H
#define XHEAP_ACTION_DIFF_MATCH_H

#include <stdbool.h>
#include <stddef.h>

struct diff;

/** Return whether no process of A and no process of B have images of one file name, or go by one name. */
bool diff_is_of_other_programs(const struct diff *diff);

/** Return the file names of images that have no symbols, and other builds in the first run of A and in the last one of
 *  B: their frames match by nothing. The caller frees the texts and the array. */
char **diff_other_builds(const struct diff *diff, size_t *count);

#endif
