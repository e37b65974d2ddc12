/* SPDX-License-Identifier: MIT */
/** The logger's side of a region: making, growing, adopting and checking it. One thread at a time uses a struct
    region. */
#ifndef XHEAP_REGION_REGION_H
#define XHEAP_REGION_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/intern.h"
#include "region/access.h"
#include "region/layout.h"

/** The numbers of a new region. */
struct region_config {
	uint32_t buffer_size; /**< bytes, a multiple of 4096 */
	uint32_t buffer_min, buffer_max;
	/** 0: defaults (8192, 1 Mi, 8192, 16384, 128 Ki) */
	uint32_t slot_max, pc_max, file_max, image_max, code_max;
	uint32_t options; /**< enum region_option */
	uint32_t clock;
	bool never_waits; /**< its process drops events rather than waits: there is more room from the beginning */
	uint64_t start_ticks;
};

/** A mapped region, and the logger's private copy of its limits, which is the one that counts. */
struct region {
	int fd;
	struct region_header *header; /**< start of the mapping */
	size_t bytes;
	uint64_t id;
	struct region_limits limits; /**< as made by region_create(), or checked by region_open() */
	/** the logger's private copy */
	uint32_t process_ready, entry_ready, file_ready, heap_ready, name_ready, slot_ready, pc_ready, buffer_ready,
		code_ready;
	uint32_t image_ready;                       /**< the number of the newest image */
	uint32_t pc_low;                            /**< ids below it have no row any more */
	uint32_t entry_room, file_room, image_room; /**< allocated rows; those below *_ready are filled */
	uint32_t pc_room;
	uint32_t *image_number; /**< by row: the number of its image; 0: the row is free */
	struct intern files;    /**< the rows of files; a file's id is its index */
	bool has_unloads;       /**< images were unloaded whose rows are not free yet */
	uint32_t buffer_min;    /**< how many buffers keep their memory when unused */
	uint32_t buffers_away;  /**< of buffer_ready, buffers without memory */
	/** the most buffers in use since the last region_grow(); noted by the drain when it releases buffers */
	uint32_t buffers_used;
	uint32_t guard;           /**< of the mapping */
	bool is_cut;              /**< its file is shorter than when it was made, or was so when it was adopted */
	bool is_short;            /**< the file system had no room for the last growth */
	struct region_idle *idle; /**< by buffer: since when it is unused; NULL: not watched */
};

/** Make the file `name` (mode 0600) in an open directory, allocate its first pages, map it. path: of the file, for
    messages. Return 0 or a negative errno; on failure no file remains. */
int region_create(struct region *region, int directory, const char *name, const char *path,
		  const struct region_config *config, struct diag *diag);

/** Free the memory of all buffers although processes have them mapped: these were detached from, and read zeros from
    now on. */
void region_forget_buffers(struct region *region);

/** Adopt the region that a dead logger left, checking every offset and limit. Return 0 or a negative errno. A shortened
    file is adopted, too, as damaged. Later writes to the region do not change the file, so it can be adopted again. */
int region_open(struct region *region, const char *path, struct diag *diag);

/** Notify the processes of an adopted region that nobody records them any more. */
void region_let_go(const struct region *region);

/** Unmap the region and close its file. Safe after a failed region_create(). */
void region_close(struct region *region);

/** Return whether a part of the region is missing, or once was. Its former contents read as zeros, and processes that
    have it mapped see other bytes. */
bool region_is_damaged(struct region *region);

/** Notify waiting threads that there is more room. */
void region_note_progress(const struct region *region);

/** Notify waiting threads that a slot is free. */
void region_note_slots(const struct region *region);

/** Allocate more pages if a count is close to the number of ready rows. A failure is no error: is_short is set, and the
    target waits or drops. */
void region_grow(struct region *region);

/** Count one more interval. Free the memory of buffers above the minimum that were unused for `intervals` intervals (0:
    of all free buffers). */
void region_trim(struct region *region, uint32_t intervals);

/** Answer a message that tid has posted and wake it; do nothing if the message is another one by now. */
void region_answer(struct region_message *message, uint32_t tid);

/** Add an image and, if it is new, its file (unused bytes zero). image: all but its number and file. Return the row, or
    REGION_NONE if there is no room. */
uint32_t region_add_image(struct region *region, const struct region_image *image, const struct region_file *file);
/** Note that the image of a row was unloaded at `ticks`. The row stays until region_free_image(). */
void region_unload_image(struct region *region, uint32_t row, uint64_t ticks);
/** Free the row of an image that is unloaded, or whose process has ended, for another image. */
void region_free_image(struct region *region, uint32_t row);

/** Retire the oldest ids of program counters if few new ones are left. Return a number; ids below it get no program
    counter any more. The caller takes what those from region->pc_low on mean, and calls region_reuse_pcs(). */
uint32_t region_retire_pcs(struct region *region);
/** Use the rows of ids below `low`, the result of region_retire_pcs(), for new ids. */
void region_reuse_pcs(struct region *region, uint32_t low);
/** Append an entry's row, complete before entry_ready is raised. Return its index, or UINT32_MAX if the array is
    full. */
uint32_t region_add_entry(struct region *region, const struct region_entry *entry);

/* Typed views of the arrays; the caller checks the index against the limits. */
/** Return a process's row. */
struct region_process *region_process(const struct region *region, uint32_t index);
/** Return an entry's row. */
struct region_entry *region_entry(const struct region *region, uint32_t index);
/** Return a file's row. */
struct region_file *region_file(const struct region *region, uint32_t index);
/** Return an image's row. */
struct region_image *region_image(const struct region *region, uint32_t index);
/** Return a heap's row. */
struct region_heap *region_heap(const struct region *region, uint32_t index);
/** Return the row of a heap's name. */
struct region_heap_name *region_heap_name(const struct region *region, uint32_t index);
/** Return the row of a code object. */
struct region_code *region_code(const struct region *region, uint32_t index);
/** Return a thread's slot. */
struct region_slot *region_slot(const struct region *region, uint32_t index);
/** Return the row of a program counter, whose id is at least pc_low and below pc_ready. */
struct region_pc *region_pc(const struct region *region, uint32_t id);
/** Return the head of a buffer. */
struct region_buffer *region_buffer(const struct region *region, uint32_t index);
/** Return the first byte of a buffer. */
uint8_t *region_buffer_bytes(const struct region *region, uint32_t index);

/** Get the exit status that the process with this pid (in its own namespace) left just before it ended. Return false if
    it left none. */
bool region_exit_status(const struct region_process *process, uint32_t pid, int *status);

#endif
