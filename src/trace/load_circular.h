/* SPDX-License-Identifier: MIT */
/** Circular files: segments lie where there was room, and may be overwritten while they are read. */
#ifndef XHEAP_TRACE_LOAD_CIRCULAR_H
#define XHEAP_TRACE_LOAD_CIRCULAR_H

#include <stdint.h>

struct diag;
struct format_header;
struct load;

/** Read the segments of a circular file in the order of their numbers, whatever their place. */
void load_walk_circular(struct load *load, uint64_t offset);

/** Read a circular file that is being written as of one moment. 0 or a negative errno. */
int load_read_overwritten(struct load *load, const struct format_header *header, const char *path, struct diag *diag);

#endif
