/* SPDX-License-Identifier: MIT */
/** The mappings and patches of a recording in a process, found there by a later recording. Everything that is read in
    the process may be wrong. It is used only for the process's own memory, and only where the kernel's list of its
    mappings agrees. */
#ifndef XHEAP_INJECT_REMAINS_H
#define XHEAP_INJECT_REMAINS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/inject.h"
#include "inject/remote.h"
#include "os/proc.h"

enum { PIECES_MAX = 512, PATCH_BYTES_MAX = 32 };

/** The logger's mappings in a process, in the order of their removal: code first, the region last. */
struct pieces {
	struct inject_piece item[PIECES_MAX];
	uint32_t count, code_count;
	uint64_t bytes;
	/** addresses of the process's own list, which may name more at the removal, and of the region; 0: none */
	uint64_t list_at, region_at;
};

/** A patch in the code of an image, and the bytes of the image's file in its place. */
struct patch {
	uint64_t address;
	uint32_t size;
	bool is_door; /**< a door: threads may be in it, on their way to another patch's stub */
	uint8_t now[PATCH_BYTES_MAX], file[PATCH_BYTES_MAX];
};
/** Patches, sorted as they were found; items is the caller's to free. */
struct patches {
	struct patch *items;
	uint32_t count;
};

/** List the mappings that this recording has made. */
void pieces_of(struct pieces *pieces, const struct inject *inject, const struct proc_map *maps, int count);

/** List the mappings of a recording that is over, or of that of the region with this inode. Return false if there are
    none. */
bool pieces_find(struct pieces *pieces, int memory, const struct proc_map *maps, int count, uint64_t inode);

/** Unmap the pieces, and the recorder's own mappings, by calls of a stopped thread. The caller knows that no thread is
    in the code or will return to it. */
void pieces_unmap(const struct pieces *pieces, struct remote *remote);

/** Find all patches that lead into the pieces; the caller frees them. Return 0, or a negative errno with the reason: a
    patch cannot be undone since its image's file is gone. */
int patches_find(struct patches *patches, pid_t pid, int memory, const struct pieces *pieces,
		 const struct proc_map *maps, int count, struct diag *diag);

#endif
