/* SPDX-License-Identifier: MIT */
/**
 * Allocations as few bytes: a group of up to 256 of them, column by column. A column has what its numbers have in
 * common and the rest in as few bits as most of them need; those that need more are exceptions, whole, behind it (the
 * coding known as patched frame of reference). What few reports ask for (struct heap_details) is apart.
 *
 *     column   width in bits (1 byte), exceptions (1 byte), their bytes each (1 byte), least number (LEB128),
 *              numbers less the least, low bits first, to a whole byte; places of exceptions (1 byte each), exceptions
 *              less the least
 */
#ifndef XHEAP_TABLE_PACK_H
#define XHEAP_TABLE_PACK_H

#include "table/allocation.h"
#include "trace/bytes.h"

enum { PACK_ROWS = 256, PACK_SLACK_BYTES = 8 /* to be had behind packed bytes, whatever is in them */ };

/** The end of an allocation that was packed without. */
struct pack_end {
	uint8_t row; /**< of the group */
	uint8_t end, flags;
	uint32_t end_site, end_thread;
	int64_t end_ns;
};

/** What numbers of a group have to be below, and what it takes from elsewhere. */
struct pack_limits {
	uint32_t sites, threads, heaps;
	int64_t open_ns; /**< when open allocations end */
};

/** What a group's rows consist of. */
enum pack_column {
	PACK_BIRTH,
	PACK_END,
	PACK_SIZE,
	PACK_SITE,
	PACK_END_SITE, /**< one more than it is; 0: none */
	PACK_THREAD,
	PACK_HEAP,  /**< one more than it is; 0: none */
	PACK_STATE, /**< enum heap_end, and from bit PACK_FLAGS_SHIFT on the flags */
	PACK_COLUMNS
};
enum { PACK_FLAGS_SHIFT = 4, PACK_END_MASK = (1 << PACK_FLAGS_SHIFT) - 1 };

/** Which of them are wanted: a bit for each. Times are only to be had together, and so are states. */
enum {
	PACK_STATES = 1 << PACK_STATE,
	PACK_SIZES = 1 << PACK_SIZE,
	PACK_SITES = 1 << PACK_SITE,
	PACK_END_SITES = 1 << PACK_END_SITE,
	PACK_THREADS = 1 << PACK_THREAD,
	PACK_HEAPS = 1 << PACK_HEAP,
	PACK_TIMES = 1 << PACK_BIRTH | 1 << PACK_END | PACK_STATES,
	PACK_ALL = (1 << PACK_COLUMNS) - 1,
	PACK_DETAILS = 1 << PACK_COLUMNS | PACK_THREADS, /* struct heap_details, and what it needs */
	PACK_EVERYTHING = PACK_ALL | PACK_DETAILS
};

/** A group's rows, column by column. What was not wanted is anything. */
struct pack_columns {
	uint64_t numbers[PACK_COLUMNS][PACK_ROWS];
};

/** Row i as an allocation, as far as the columns are there. */
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

/** Add a group's packed rows, or what is apart of them. When memory runs out, bytes->has_failed. */
void pack_rows(struct bytes *bytes, const struct heap_allocation *allocations, uint32_t count);
void pack_details(struct bytes *bytes, const struct heap_allocation *allocations, const struct heap_details *details,
		  uint32_t first, uint32_t count);
void pack_ends(struct bytes *bytes, const struct heap_allocation *allocations, const struct pack_end *ends,
	       uint32_t count);

/**
 * The reverse, of bytes that may be anything: false when they are no group of `count` rows within the limits. Behind
 * `size` bytes PACK_SLACK_BYTES can be read. `first` is the first row's number. Details need the rows' threads, ends
 * their times.
 */
bool unpack_rows(const uint8_t *data, size_t size, struct pack_columns *columns, uint32_t count,
		 const struct pack_limits *limits, unsigned wanted);
bool unpack_details(const uint8_t *data, size_t size, const struct pack_columns *rows, struct heap_details *details,
		    uint32_t first, uint32_t count, const struct pack_limits *limits);
/** Ends of rows that are there already: into their columns, and details where that is not NULL. */
bool unpack_ends(const uint8_t *data, size_t size, struct pack_columns *rows, struct heap_details *details,
		 uint32_t count, uint32_t end_count, const struct pack_limits *limits);

#endif
