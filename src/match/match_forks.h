/* SPDX-License-Identifier: MIT */
/** Blocks that a forked process inherits from its parent. */
#ifndef XHEAP_MATCH_MATCH_FORKS_H
#define XHEAP_MATCH_MATCH_FORKS_H

#include <stdbool.h>
#include <stdint.h>

struct matching;
struct point;

/** End a child's copy of a block of its parent. Return false if there is no such block. */
bool matching_copy_end(struct matching *matching, const struct point *point);
/** Note what the child inherits at its fork. */
void matching_fork(struct matching *matching, uint32_t child);

#endif
