/* SPDX-License-Identifier: MIT */
/**
 * What a recording has mapped and patched in a process, found there by whoever comes later. Everything that is read in
 * the process may be wrong: it is only used for the process's own memory, and only where the kernel's list of its
 * mappings agrees.
 */
#ifndef XHEAP_INJECT_REMAINS_H
#define XHEAP_INJECT_REMAINS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/inject.h"
#include "inject/remote.h"
#include "os/proc.h"

enum { PIECES_MAX = 512, PATCH_BYTES_MAX = 32 };

/** Memory that was mapped for us, in the order in which it goes: code first, the region last. */
struct pieces {
	struct inject_piece item[PIECES_MAX];
	uint32_t count, code_count;
	uint64_t bytes;
	/** the process's own list, which may name more by the time that they go; 0: none */
	uint64_t list_at, region_at;
};

/** A patch in the code of an image, and what the image's file has in its place. */
struct patch {
	uint64_t address;
	uint32_t size;
	bool is_door; /**< threads may be in it, on their way from another one */
	uint8_t now[PATCH_BYTES_MAX], file[PATCH_BYTES_MAX];
};
struct patches {
	struct patch *items;
	uint32_t count;
};

/** What this recording has mapped. */
void pieces_of(struct pieces *pieces, const struct inject *inject, const struct proc_map *maps, int count);

/** What a recording that is over has mapped, or that of the region with this inode. False: there is nothing. */
bool pieces_find(struct pieces *pieces, int memory, const struct proc_map *maps, int count, uint64_t inode);

/** Unmap them, and what the recorder has mapped itself, by calls of a thread that stands; the caller knows that nobody
 *  is in the code or will come back to it. */
void pieces_unmap(const struct pieces *pieces, struct remote *remote);

/** All patches that lead into the pieces, to be freed. A negative errno, with the reason: one cannot be undone, since
    its image's file is gone. */
int patches_find(struct patches *patches, pid_t pid, int memory, const struct pieces *pieces,
		 const struct proc_map *maps, int count, struct diag *diag);

#endif
