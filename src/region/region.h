/* SPDX-License-Identifier: MIT */
/** The logger's side of a region: making, growing, adopting and checking it. */
#ifndef XHEAP_REGION_REGION_H
#define XHEAP_REGION_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "region/layout.h"

struct region_config {
	uint32_t buffer_size;         /**< bytes, a multiple of 4096 */
	uint32_t buffer_min, buffer_max;
	uint32_t buffer_apart;        /**< beyond buffer_max: one for each thread that lives, so many at most. A thread keeps its own for as long as it lives */
	uint32_t slot_max, pc_max, image_max; /**< 0: defaults (4096, 1 Mi, 4096) */
	uint32_t options;             /**< enum region_option */
	uint32_t wait_limit_ms;
	uint32_t clock;
	uint64_t start_ticks;
};

/** A mapped region and the logger's own copy of its limits; the copy is what is believed. */
struct region {
	int fd;
	struct region_header *header; /**< start of the mapping */
	size_t bytes;
	uint64_t id;
	struct region_header limits;  /**< as made by region_create(), or checked by region_open() */
	uint32_t entry_ready, image_ready, heap_ready, slot_ready, pc_ready, buffer_ready; /**< our own copy of what was allocated */
	uint32_t buffers_used;        /**< most buffers in use that were seen since the last region_grow(): whoever gives them back notes it */
};

/** Make the file (mode 0600), allocate its first pages, map it. 0 or a negative errno; nothing is left behind on failure. */
int region_create(struct region *region, const char *path, const struct region_config *config, struct diag *diag);

/** Give the memory of all buffers back, though processes have them mapped: they were let go of and read as zeros from now on. */
void region_forget_buffers(struct region *region);

/** Adopt one that a dead logger left; every offset and limit is checked against the file's size. */
int region_open(struct region *region, const char *path, struct diag *diag);

void region_close(struct region *region);

/** Tell those who wait that there is more room. */
void region_note_progress(const struct region *region);

/** Allocate more pages where a count nears what is ready: buffers (fewer than a quarter free), program counters, heaps, slots, images.
 *  Failing to is no error: the target waits or drops. */
void region_grow(struct region *region);

/** Append rows; their index, or UINT32_MAX when full. The row is complete before the ready count is raised. */
uint32_t region_add_image(struct region *region, const struct region_image *image);
uint32_t region_add_entry(struct region *region, const struct region_entry *entry);

/* Typed views; the index is the caller's to check against limits. */
struct region_process *region_process(const struct region *region, uint32_t index);
struct region_entry *region_entry(const struct region *region, uint32_t index);
struct region_image *region_image(const struct region *region, uint32_t index);
struct region_heap *region_heap(const struct region *region, uint32_t index);
struct region_heap_name *region_heap_name(const struct region *region, uint32_t index);
struct region_slot *region_slot(const struct region *region, uint32_t index);
struct region_pc *region_pc(const struct region *region, uint32_t index);
struct region_buffer *region_buffer(const struct region *region, uint32_t index);
uint8_t *region_buffer_bytes(const struct region *region, uint32_t index);

/** Store the exit status that the process with this pid, as it sees itself, left just before it ended. False: it left none. */
bool region_exit_status(const struct region_process *process, uint32_t pid, int *status);

#endif
