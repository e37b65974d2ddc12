/* SPDX-License-Identifier: MIT */
/** The logger's side of a region: making, growing, adopting and checking it. */
#ifndef XHEAP_REGION_REGION_H
#define XHEAP_REGION_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "region/access.h"
#include "region/layout.h"

struct region_config {
	uint32_t buffer_size; /**< bytes, a multiple of 4096 */
	uint32_t buffer_min, buffer_max;
	uint32_t slot_max, pc_max, image_max; /**< 0: defaults (8192, 1 Mi, 4096) */
	uint32_t options;                     /**< enum region_option */
	uint32_t clock;
	uint64_t start_ticks;
};

/** A mapped region and the logger's own copy of its limits; the copy is what is believed. */
struct region {
	int fd;
	struct region_header *header; /**< start of the mapping */
	size_t bytes;
	uint64_t id;
	struct region_limits limits; /**< as made by region_create(), or checked by region_open() */
	/** our own copy */
	uint32_t process_ready, entry_ready, image_ready, heap_ready, name_ready, slot_ready, pc_ready, buffer_ready;
	uint32_t entry_room, image_room; /**< rows that are allocated; those that are ready are filled */
	uint32_t buffer_min;             /**< so many stay when nobody uses them */
	uint32_t buffers_away;           /**< of buffer_ready */
	/** most buffers in use that were seen since the last region_grow(): whoever gives them back notes it */
	uint32_t buffers_used;
	uint32_t guard;           /**< of the mapping */
	bool is_cut;              /**< its file is shorter than it was made, or was when it was adopted */
	bool is_short;            /**< the file system had no room for what was wanted last */
	struct region_idle *idle; /**< by buffer: since when nobody has used it; NULL: not watched */
};

/** Make the file (mode 0600), allocate its first pages, map it. 0 or a negative errno; nothing is left behind on
    failure. */
int region_create(struct region *region, const char *path, const struct region_config *config, struct diag *diag);

/** The same in an open directory. path: of the file, for messages. */
int region_create_in(struct region *region, int directory, const char *name, const char *path,
		     const struct region_config *config, struct diag *diag);

/** Give the memory of all buffers back, though processes have them mapped: they were let go of and read as zeros from
    now on. */
void region_forget_buffers(struct region *region);

/** Adopt one that a dead logger left; every offset and limit is checked. A file that was cut is adopted, too: it is
 *  damaged. The file is not changed by what is written to the region: it can be adopted again. */
int region_open(struct region *region, const char *path, struct diag *diag);

/** Tell the processes that have one which was adopted that nobody records them any more. */
void region_let_go(const struct region *region);

void region_close(struct region *region);

/** Whether a part of it is not there, or was not once: what was there reads as zeros now, and processes that have it
    mapped see something else. */
bool region_is_damaged(struct region *region);

/** Tell those who wait that there is more room. */
void region_note_progress(const struct region *region);

/** The same where it is a slot that became free. */
void region_note_slots(const struct region *region);

/** Allocate more pages where a count nears what is ready. Failing to is no error: is_short is set, and the target waits
    or drops. */
void region_grow(struct region *region);

/** One more interval has passed: buffers above the minimum that nobody has used for `intervals` of them give their
    memory back (0: all that are free). */
void region_trim(struct region *region, uint32_t intervals);

/** Answer a message that tid has posted; nothing if it is not that one any more. */
void region_answer(struct region_message *message, uint32_t tid);

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

/** Store the exit status that the process with this pid, as it sees itself, left just before it ended. False: it left
    none. */
bool region_exit_status(const struct region_process *process, uint32_t pid, int *status);

#endif
