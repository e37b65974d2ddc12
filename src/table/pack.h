/* SPDX-License-Identifier: MIT */
/**
 * Allocations packed into few bytes: a group of up to 256 of them, column by column. A column stores the least of its
 * numbers once and the differences in as few bits as most of them need. Larger differences are exceptions, stored whole
 * behind the column (the coding known as patched frame of reference). The columns of a group lie apart: each is
 * appended to the strip of its column (table/groups.h), so that a question reads only those that it needs.
 *
 *     column   width in bits (1 byte), exceptions (1 byte), their bytes each (1 byte), least number (LEB128),
 *              numbers less the least, low bits first, to a whole byte; places of exceptions (1 byte each), exceptions
 *              less the least
 */
#ifndef XHEAP_TABLE_PACK_H
#define XHEAP_TABLE_PACK_H

#include "table/allocation.h"
#include "trace/bytes.h"

enum { PACK_ROWS = 256, PACK_SLACK_BYTES = 8 /* must be readable behind packed bytes, whatever they hold */ };

/** The end of an allocation that was packed before it ended. */
struct pack_end {
	uint8_t row; /**< index in the group */
	uint8_t end, flags;
	uint32_t end_site, end_thread, end_point;
	int64_t end_ns;
};

/** Upper limits for numbers of a group, and facts from outside of it. */
struct pack_limits {
	uint32_t sites, threads, heaps;
	int64_t open_ns; /**< the end of open allocations */
	uint32_t points;
};

/** The columns of a group: of its rows, of their details (struct heap_details), and of ends that came later. */
enum pack_column {
	PACK_BIRTH,
	PACK_END,
	PACK_SIZE,
	PACK_SITE,
	PACK_END_SITE, /**< stored plus one; 0: none */
	PACK_THREAD,
	PACK_HEAP,  /**< stored plus one; 0: none */
	PACK_STATE, /**< enum heap_end, and the flags from bit PACK_FLAGS_SHIFT on */
	PACK_COLUMNS,
	PACK_ADDRESS = PACK_COLUMNS,
	PACK_SLACK,
	PACK_PREVIOUS,
	PACK_END_THREAD,
	PACK_BIRTH_POINT, /**< stored plus one, as the difference to the one before; 0: none */
	PACK_END_POINT,   /**< stored as the difference to the beginning; 0: none */
	PACK_LATE_ENDS,   /**< six columns in one */
	PACK_STRIPS
};
enum { PACK_FLAGS_SHIFT = 4, PACK_END_MASK = (1 << PACK_FLAGS_SHIFT) - 1 };

/** Bits of wanted columns. Times are read together, and so are states. The thread of a free is stored as its difference
    to that of the allocation. */
enum {
	PACK_STATES = 1 << PACK_STATE,
	PACK_SIZES = 1 << PACK_SIZE,
	PACK_SITES = 1 << PACK_SITE,
	PACK_END_SITES = 1 << PACK_END_SITE,
	PACK_THREADS = 1 << PACK_THREAD,
	PACK_HEAPS = 1 << PACK_HEAP,
	PACK_TIMES = 1 << PACK_BIRTH | 1 << PACK_END | PACK_STATES,
	PACK_ALL = (1 << PACK_COLUMNS) - 1,
	PACK_ADDRESSES = 1 << PACK_ADDRESS,
	PACK_SLACKS = 1 << PACK_SLACK,
	PACK_PREVIOUS_ONES = 1 << PACK_PREVIOUS,
	PACK_END_THREADS = 1 << PACK_END_THREAD | PACK_THREADS,
	PACK_DETAILS = PACK_ADDRESSES | PACK_SLACKS | PACK_PREVIOUS_ONES | PACK_END_THREADS,
	PACK_BIRTH_POINTS = 1 << PACK_BIRTH_POINT,
	PACK_POINTS = PACK_BIRTH_POINTS | 1 << PACK_END_POINT,
	PACK_ANY_DETAIL = (PACK_DETAILS & ~PACK_THREADS) | PACK_POINTS,
	PACK_ENDINGS = 1 << PACK_END | PACK_END_SITES | PACK_STATES | 1 << PACK_END_THREAD |
		       1 << PACK_END_POINT, /* what late ends change */
	PACK_EVERYTHING = PACK_ALL | PACK_DETAILS | PACK_POINTS
};

/** A group's rows, column by column. Unwanted columns are undefined. */
struct pack_columns {
	uint64_t numbers[PACK_COLUMNS][PACK_ROWS];
};

/** Return row i as an allocation, as far as its columns were wanted. */
static inline struct heap_allocation pack_row(const struct pack_columns *columns, uint32_t i)
{
	uint64_t state = columns->numbers[PACK_STATE][i];
	return (struct heap_allocation){.birth_ns = (int64_t)columns->numbers[PACK_BIRTH][i],
					.end_ns = (int64_t)columns->numbers[PACK_END][i],
					.size_bytes = columns->numbers[PACK_SIZE][i],
					.end = state & PACK_END_MASK,
					.flags = (uint8_t)(state >> PACK_FLAGS_SHIFT),
					.site = (uint32_t)columns->numbers[PACK_SITE][i],
					.end_site = (uint32_t)columns->numbers[PACK_END_SITE][i] - 1,
					.thread = (uint32_t)columns->numbers[PACK_THREAD][i],
					.heap = (uint32_t)columns->numbers[PACK_HEAP][i] - 1};
}

/** Append the columns of a group's rows, each to its strip: strips[PACK_BIRTH], ... Without memory, has_failed is set
    in the strip, here and below. */
void pack_rows(struct bytes strips[PACK_STRIPS], const struct heap_allocation *allocations, uint32_t count);
/** Append the columns of a group's details. first: number of its first row. */
void pack_details(struct bytes strips[PACK_STRIPS], const struct heap_allocation *allocations,
		  const struct heap_details *details, uint32_t first, uint32_t count);
/** Append packed ends of a group; allocations[i] has the end ends[i]. */
void pack_ends(struct bytes *bytes, const struct heap_allocation *allocations, const struct pack_end *ends,
	       uint32_t count);

/** Pass over a group's part of a strip: of a group with so many rows and late ends. */
void pack_skip(struct reading *strip, enum pack_column column, uint32_t count, uint32_t end_count);

/** Unpack rows from strips, which begin at the group and may be anything. Return false unless they are `count` rows
    within the limits. Strips that are not wanted are not touched. PACK_SLACK_BYTES must be readable behind each. */
bool unpack_rows(const struct reading strips[PACK_STRIPS], struct pack_columns *columns, uint32_t count,
		 const struct pack_limits *limits, unsigned wanted);
/** Unpack the wanted ones of the details; the others keep their values. rows: with PACK_THREADS, for PACK_END_THREADS.
    first: number of the group's first row. Otherwise as unpack_rows(). */
bool unpack_details(const struct reading strips[PACK_STRIPS], const struct pack_columns *rows,
		    struct heap_details *details, uint32_t first, uint32_t count, const struct pack_limits *limits,
		    unsigned wanted);
/** Unpack ends into the wanted columns of rows, which must have their times, and into details. Otherwise as
    unpack_rows(). */
bool unpack_ends(const struct reading *strip, struct pack_columns *rows, struct heap_details *details, uint32_t count,
		 uint32_t end_count, const struct pack_limits *limits, unsigned wanted);

#endif
