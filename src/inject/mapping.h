/* SPDX-License-Identifier: MIT */
/** The mappings that the logger makes in a process: the recorder's code with its islands, the region, the recorder's
    own memory. */
#ifndef XHEAP_INJECT_MAPPING_H
#define XHEAP_INJECT_MAPPING_H

#include <sys/mman.h>

#include "inject/inject.h"
#include "inject/remote.h"

enum { MAP_OURS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

/** A mapping to make. fd: of a file, in the target; -1: anonymous. */
struct map_wish {
	uint64_t bytes;
	int protection, flags, fd;
};

/** Return whether a mapping call of the target has failed; its result is then a negative errno. */
bool map_failed(int64_t result);

/** Map memory at an address that the program does not count on. Return the address or a negative errno. */
int64_t map_anywhere(const struct inject *inject, struct remote *remote, const struct map_wish *wish);

/** Map memory that the recorder writes, with the guard below it. Return the address or a negative errno. */
int64_t map_written(const struct inject *inject, struct remote *remote, uint64_t bytes);

/** Map everything that recording needs. near: the loader, or a static executable. Return 0, or a negative errno with
    the reason in `diag`. */
int map_all(struct inject *inject, struct remote *remote, const char *region_path, uint64_t near,
	    const struct proc_map *executable, const struct inject_exclusive *exclusive, struct diag *diag);

/** Map an island near the program in the file, if it has functions to patch and its loader will map it far from the
    other islands. */
void map_near_program(struct inject *inject, struct remote *remote, int file, const struct hook_image *hooks);

#endif
