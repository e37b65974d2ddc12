/* SPDX-License-Identifier: MIT */
/**
 * A table's allocations: packed groups (table/pack.h), written once, in the order of the allocations' beginnings, and
 * read afterwards. They lie in a file, which is an index (table/index_file.h), or in memory.
 *
 * The columns lie apart. One column of 16 groups is a strip, which is read and checked as a whole. Strips of one column
 * lie behind each other as far as they are written together:
 *
 *     groups    | 0 ... 15 | 16 ... 31 | 32 ...
 *     file      birth 0, birth 1, ..., end 0, end 1, ..., size 0, size 1, ..., and so on; late ends of all groups
 */
#ifndef XHEAP_TABLE_GROUPS_H
#define XHEAP_TABLE_GROUPS_H

#include "table/pack.h"

enum { GROUPS_PER_STRIP = 16 };

/** The contents of a group. The times cover all its allocations; a group with one from before the trace has all
    times. */
struct heap_group {
	uint16_t row_count;
	uint16_t end_count;  /**< ends that came after the group had been written */
	uint16_t open_count; /**< allocations that have no end at all */
	uint16_t reserved;
	int64_t first_ns, last_ns; /**< beginnings */
	int64_t end_ns;            /**< no allocation of the group lives longer */
};
_Static_assert(sizeof(struct heap_group) == 32, "the index has them as they are");

/** The place of a column of 16 groups. */
struct heap_strip {
	uint64_t offset;
	uint32_t bytes; /**< 0: no group has any */
	uint32_t checksum;
};

/** The places of all columns of 16 groups. */
struct heap_strips {
	struct heap_strip of[PACK_STRIPS]; /**< by enum pack_column */
};
_Static_assert(sizeof(struct heap_strips) == PACK_STRIPS * 16, "the index has them as they are");

/** Return how many strips of a column so many groups have. */
static inline uint32_t groups_strip_count(uint32_t group_count)
{
	return group_count / GROUPS_PER_STRIP + (group_count % GROUPS_PER_STRIP > 0);
}

/** A packed group that the table does not have yet: where its columns end in the bytes beside it. */
struct packed_group {
	struct heap_group group;
	size_t ends[PACK_STRIPS];
};

/** Packed groups that the table does not have yet. Zero it to begin. */
struct groups_packed {
	struct bytes strips[PACK_STRIPS];
	struct packed_group *items;
	uint32_t count;
	size_t capacity;
};

/** Packed bytes of a column that are not in the file yet: strips from number `first` on, whose offsets are relative to
    them, and the beginning of the next one. */
struct groups_column {
	struct bytes bytes;
	uint32_t first;
	size_t begun; /**< where the next strip begins */
};

/** The late ends of a group, while the table is made: where they lie in `ends`. */
struct groups_late {
	uint64_t offset;
	uint32_t bytes;
};

/** The groups of a table. */
struct heap_groups {
	int fd;           /**< -1: in memory */
	bool is_borrowed; /**< the file is another one's: it stays open, and what cannot be written is given up */
	struct bytes memory;
	int error;          /**< why the groups are in memory and not in the file, a positive errno; 0: none */
	size_t chunk_bytes; /**< of a column that are written at a time */
	uint64_t end;       /**< of the written part */
	struct heap_group *items;
	uint32_t count;
	uint32_t reserved; /**< items that exist, including future groups of which only ends are known */
	size_t capacity;
	struct heap_strips *strips; /**< groups_strip_count(count) */
	uint32_t strip_count;       /**< of whole ones while the table is made */
	size_t strip_capacity;
	struct groups_packed one;                  /**< memory for groups_add() */
	struct groups_column columns[PACK_STRIPS]; /**< being filled */
	struct bytes ends;                         /**< of all groups, packed, up to groups_finish() */
	struct groups_late *late;                  /**< `reserved` of them */
	size_t late_capacity;
};

enum {
	GROUPS_CHUNK_BYTES = 512 << 10,
	GROUPS_CHUNK_BYTES_SMALL = 32 << 10, /* of a table that takes little memory */
	GROUPS_STRIP_MOST = 1 << 20          /* more than a strip can have */
};

/** Begin to write to fd, behind `end` bytes that are kept free; -1: to memory. The groups own the file from now on. */
void groups_begin(struct heap_groups *groups, int fd, uint64_t end);

/** Add a group: `count` allocations from number `first` on. All groups but the last one have PACK_ROWS. */
void groups_add(struct heap_groups *groups, const struct heap_allocation *allocations,
		const struct heap_details *details, uint32_t first, uint32_t count);

/** Pack a group behind those that *packed already has; details NULL: it has none. Any thread may call it. */
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

/** The bytes of a column that were read last, and where the groups of one strip begin in them. */
struct groups_window {
	uint8_t *data;
	size_t capacity;
	uint64_t offset;
	size_t size, ahead; /**< ahead: bytes read at a time */
	uint32_t strip;     /**< its number plus 1; 0: none */
	const uint8_t *places[GROUPS_PER_STRIP + 1];
};

/** The state of one reading thread. Zero it to begin. */
struct groups_reader {
	const struct heap_groups *of;
	uint32_t end; /**< groups from it on are not read ahead; 0: not known */
	struct groups_window windows[PACK_STRIPS];
};

/** Read the wanted columns of a group's allocations, and of their details. Return false if the group is damaged. */
bool groups_read(struct groups_reader *reader, const struct heap_groups *groups, uint32_t group, uint32_t first,
		 uint32_t count, const struct pack_limits *limits, unsigned wanted, struct pack_columns *columns,
		 struct heap_details *details);
/** Have the system read the wanted columns of groups from number `from` up to, not with, `to`: in few large pieces,
    ahead of groups_read(). */
void groups_read_ahead(const struct heap_groups *groups, uint32_t from, uint32_t to, unsigned wanted);
/** Free the windows. */
void groups_reader_fini(struct groups_reader *reader);

#endif
