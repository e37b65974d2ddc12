/* SPDX-License-Identifier: MIT */
/**
 * A table's allocations: packed groups (table/pack.h), written once, in the order of their beginnings, and read from
 * then on; in a file, which is an index (table/index_file.h), or in memory.
 */
#ifndef XHEAP_TABLE_GROUPS_H
#define XHEAP_TABLE_GROUPS_H

#include "table/pack.h"

/** Where a group lies, and what is in it. Times of all its allocations: that of a group which has one from before the
    trace are all times. */
struct heap_group {
	uint64_t rows_offset, details_offset, ends_offset;
	uint32_t rows_bytes, details_bytes, ends_bytes;
	uint32_t rows_checksum, details_checksum, ends_checksum;
	uint32_t end_count;        /**< ends that came when the group had been written */
	uint32_t open_count;       /**< allocations without an end, in all */
	int64_t first_ns, last_ns; /**< beginnings */
	int64_t end_ns;            /**< no allocation of the group lives longer */
};
_Static_assert(sizeof(struct heap_group) == 80, "the index has them as they are");

/** Packed groups from number `first` on that are not in the file yet; until then their offsets are those in here. */
struct groups_chunk {
	struct bytes bytes;
	uint32_t first;
};

/** Groups that are packed and not in the table's yet; their offsets are places in these bytes. Zero it to begin. */
struct groups_packed {
	struct bytes rows, details;
	struct heap_group *items;
	uint32_t count;
	size_t capacity;
};

struct heap_groups {
	int fd; /**< -1: in memory */
	struct bytes memory;
	int error;    /**< why it is there and not in the file; 0 */
	uint64_t end; /**< of what is written */
	struct heap_group *items;
	uint32_t count;
	uint32_t reserved; /**< items that are there: of groups to come, with what is known of their ends */
	size_t capacity;
	struct groups_packed one;          /**< memory for groups_add() */
	struct groups_chunk rows, details; /**< being filled */
	struct bytes ends;                 /**< all of them, packed, up to groups_finish() */
};

enum { GROUPS_CHUNK_BYTES = 256 << 10 /* written, or read at most, at a time */ };

/** Begin to write to fd, behind `end` bytes that are kept free; -1: to memory. The file is ours from now on. */
void groups_begin(struct heap_groups *groups, int fd, uint64_t end);

/** Add a group: `count` allocations from number `first` on, PACK_ROWS of them but in the last group. */
void groups_add(struct heap_groups *groups, const struct heap_allocation *allocations,
		const struct heap_details *details, uint32_t first, uint32_t count);

/** The same in two steps, of which the first one, packing behind what is packed already, can be done by any thread. */
void groups_pack(struct groups_packed *packed, const struct heap_allocation *allocations,
		 const struct heap_details *details, uint32_t first, uint32_t count);
void groups_append(struct heap_groups *groups, const struct groups_packed *packed);
void groups_packed_clear(struct groups_packed *packed);
void groups_packed_fini(struct groups_packed *packed);

/** Ends of open allocations of a group, which may be added later; allocations[i] is the one of ends[i]. Once for each
    group. */
void groups_add_ends(struct heap_groups *groups, uint32_t group, const struct heap_allocation *allocations,
		     const struct pack_end *ends, uint32_t count);

/** All that was added can be read now. When the file could not be written any more (a full disk), all is in memory:
    error says why. */
void groups_finish(struct heap_groups *groups);
void groups_fini(struct heap_groups *groups);

/** Whether groups that are finished lie within what is written, and their counts can be (base/check.h). */
bool groups_is_valid(const struct heap_groups *groups);

/** Bytes of the file that were read last. */
struct groups_window {
	uint8_t *data;
	uint64_t offset;
	size_t size, ahead; /**< ahead: bytes that are read at a time */
};

/** Zero it to begin; one for each reading thread. */
struct groups_reader {
	struct groups_window rows, details, ends;
};

/** Those columns of a group's allocations that are wanted, and details where these are. False when it is not as it was
    written. */
bool groups_read(struct groups_reader *reader, const struct heap_groups *groups, uint32_t group, uint32_t first,
		 uint32_t count, const struct pack_limits *limits, unsigned wanted, struct pack_columns *columns,
		 struct heap_details *details);
void groups_reader_fini(struct groups_reader *reader);

#endif
