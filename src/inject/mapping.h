/* SPDX-License-Identifier: MIT */
/** Mapping memory of ours into a process: the recorder's code with its islands, the region, the recorder's own
    memory. */
#ifndef XHEAP_INJECT_MAPPING_H
#define XHEAP_INJECT_MAPPING_H

#include <sys/mman.h>

#include "inject/inject.h"
#include "inject/remote.h"

enum { MAP_OURS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

/** What to map. fd: of a file, in the target; -1: none. */
struct map_wish {
	uint64_t bytes;
	int protection, flags, fd;
};

/** Whether a call of the target's that maps has failed: then the result is a negative errno. */
bool map_failed(int64_t result);

/** Map where the program does not count on room. */
int64_t map_anywhere(const struct inject *inject, struct remote *remote, const struct map_wish *wish);

/** Map all that recording takes. near: the loader, or the executable where that is static. 0, or a negative errno with
    the reason in diag. */
int map_all(struct inject *inject, struct remote *remote, const char *region_path, uint64_t near,
	    const struct proc_map *executable, const struct inject_alone *alone, struct diag *diag);

#endif
