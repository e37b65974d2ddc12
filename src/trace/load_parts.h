/* SPDX-License-Identifier: MIT */
/** Functions that the files of loading share. Only these files include it. */
#ifndef XHEAP_TRACE_LOAD_PARTS_H
#define XHEAP_TRACE_LOAD_PARTS_H

#include "base/grow.h"
#include "trace/load.h"

enum { ROWS_MAX = 1 << 28 };

/* A block as it was found: its head is in load->scratch. */
struct load_found {
	uint64_t offset;
	struct format_block block;
	const uint8_t *head;
};

/** Note the first place at which something is missing. Return false. */
__attribute__((format(printf, 3, 4))) bool load_cut(struct load *load, uint64_t offset, const char *format, ...);

/** Make room for one more row. False without memory, or if there are too many. */
#define load_grow(rows, count, capacity) ((count) < ROWS_MAX && grow_by_one(rows, count, capacity))

/** Free what was read, but for the descriptor. */
void load_clear(struct load *load);

/** Begin, or after load_clear() begin again, with the open file, whose header is known. Return false without memory. */
bool load_begin(struct load *load, const struct format_header *header);

/** The segment that is being read. */
static inline struct load_segment *load_current(struct load *load)
{
	return &load->segments[load->segment_count - 1];
}

/* ---- load_rows.c ---- */

/** Whether this program knows rows of this type. */
bool load_has_row_type(uint32_t type);

/** Read one row of a type that load_has_row_type(). Return false if it is not valid. */
bool load_take_row(struct load *load, uint32_t type, struct reading *reading);

/** The trace-wide id of a process, thread or mapping that the file numbers so; TRACE_NONE: none is known. */
uint32_t load_known_id(const struct load *load, const struct map *map, uint32_t id);

/** Add a trace-wide id to those of a segment. Return false if it is none, or without memory. */
bool load_ids_add(struct load_ids *ids, uint32_t id);

/* ---- load_blocks.c ---- */

/** Find the block at this offset, if there is a whole one; else note what is wrong and return false. */
bool load_find_block(struct load *load, uint64_t offset, struct load_found *found);

/** Return the offset behind the block and its zeros. */
uint64_t load_found_end(const struct load_found *found);

/** Read the payload, checked and unpacked, as what `reading` reads. */
bool load_read_payload(struct load *load, const struct load_found *found, struct reading *reading);

/** Return where the next segment behind `from` may begin; the file's size: there is none. */
uint64_t load_search_segment(struct load *load, uint64_t from);

/** Read all that lies before `end`. */
void load_walk(struct load *load, uint64_t offset, uint64_t end);

/* ---- load_circular.c ---- */

/** Read the segments of a circular file in the order of their numbers, whatever their place. */
void load_walk_circular(struct load *load, uint64_t offset);

/** Read a circular file that is being written as of one moment. 0 or a negative errno. */
int load_read_overwritten(struct load *load, const struct format_header *header, const char *path, struct diag *diag);

#endif
