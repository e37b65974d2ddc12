/* SPDX-License-Identifier: MIT */
/** A table's allocations: packed groups (table/pack.h), written once, in the order of the allocations' beginnings, and
    read afterwards. They lie in a file, which is an index (table/index_file.h), or in memory. */
#ifndef XHEAP_TABLE_GROUPS_H
#define XHEAP_TABLE_GROUPS_H

#include "table/pack.h"

/** The place and contents of a group. The times cover all its allocations; a group with one from before the trace has
    all times. */
struct heap_group {
	uint64_t rows_offset, details_offset, ends_offset;
	uint32_t rows_bytes, details_bytes, ends_bytes;
	uint32_t rows_checksum, details_checksum, ends_checksum;
	uint32_t end_count;        /**< ends that came after the group had been written */
	uint32_t open_count;       /**< allocations that have no end at all */
	int64_t first_ns, last_ns; /**< beginnings */
	int64_t end_ns;            /**< no allocation of the group lives longer */
};
_Static_assert(sizeof(struct heap_group) == 80, "the index has them as they are");

/** Packed groups from number `first` on that are not in the file yet; until then their offsets are relative to these
    bytes. */
struct groups_chunk {
	struct bytes bytes;
	uint32_t first;
};

/** Packed groups that the table does not have yet; their offsets are relative to these bytes. Zero it to begin. */
struct groups_packed {
	struct bytes rows, details;
	struct heap_group *items;
	uint32_t count;
	size_t capacity;
};

/** The groups of a table. */
struct heap_groups {
	int fd; /**< -1: in memory */
	struct bytes memory;
	int error;    /**< why the groups are in memory and not in the file, a positive errno; 0: none */
	uint64_t end; /**< of the written part */
	struct heap_group *items;
	uint32_t count;
	uint32_t reserved; /**< items that exist, including future groups of which only ends are known */
	size_t capacity;
	struct groups_packed one;          /**< memory for groups_add() */
	struct groups_chunk rows, details; /**< being filled */
	struct bytes ends;                 /**< of all groups, packed, up to groups_finish() */
};

enum { GROUPS_CHUNK_BYTES = 256 << 10 /* written, or read at most, at a time */ };

/** Begin to write to fd, behind `end` bytes that are kept free; -1: to memory. The groups own the file from now on. */
void groups_begin(struct heap_groups *groups, int fd, uint64_t end);

/** Add a group: `count` allocations from number `first` on. All groups but the last one have PACK_ROWS. */
void groups_add(struct heap_groups *groups, const struct heap_allocation *allocations,
		const struct heap_details *details, uint32_t first, uint32_t count);

/** Pack a group behind those that *packed already has. Any thread may call it. */
void groups_pack(struct groups_packed *packed, const struct heap_allocation *allocations,
		 const struct heap_details *details, uint32_t first, uint32_t count);
/** Add the packed groups, in order. */
void groups_append(struct heap_groups *groups, const struct groups_packed *packed);
/** Empty *packed and keep its memory. */
void groups_packed_clear(struct groups_packed *packed);
/** Free *packed. */
void groups_packed_fini(struct groups_packed *packed);

/** Add, once for each group, ends of its open allocations, even after the group was written. allocations[i] has the end
    ends[i]. */
void groups_add_ends(struct heap_groups *groups, uint32_t group, const struct heap_allocation *allocations,
		     const struct pack_end *ends, uint32_t count);

/** Complete the groups for reading. If the file could not be written (a full disk), all are in memory and `error` says
    why. */
void groups_finish(struct heap_groups *groups);
/** Free the groups and close the file. */
void groups_fini(struct heap_groups *groups);

/** Return whether finished groups lie within the bytes that are written, and their counts are possible
    (base/check.h). */
bool groups_is_valid(const struct heap_groups *groups);

/** The bytes of the file that were read last. */
struct groups_window {
	uint8_t *data;
	uint64_t offset;
	size_t size, ahead; /**< ahead: bytes read at a time */
};

/** The state of one reading thread. Zero it to begin. */
struct groups_reader {
	struct groups_window rows, details, ends;
};

/** Read the wanted columns of a group's allocations, and details if wanted. Return false if the group is damaged. */
bool groups_read(struct groups_reader *reader, const struct heap_groups *groups, uint32_t group, uint32_t first,
		 uint32_t count, const struct pack_limits *limits, unsigned wanted, struct pack_columns *columns,
		 struct heap_details *details);
/** Free the windows. */
void groups_reader_fini(struct groups_reader *reader);

#endif
