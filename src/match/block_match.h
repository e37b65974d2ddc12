/* SPDX-License-Identifier: MIT */
/** A block match: the allocations that begin at the points of an isolated event block, or of a run, and the ones of
    these that end there. Only the other ends are searched for among all live allocations (match/match_points.c). Any
    thread can make one. */
#ifndef XHEAP_MATCH_BLOCK_MATCH_H
#define XHEAP_MATCH_BLOCK_MATCH_H

#include "match/point_stream.h"
#include "table/table.h"

struct trace_block;

/** An end of an allocation that began before the event block. */
struct block_match_end {
	uint64_t address;
	int64_t time_ns;
	uint32_t id;    /**< of the allocation, set once it is found */
	uint32_t place; /**< index in the points */
	uint32_t site;  /**< index in sites */
	uint8_t end;    /**< enum heap_end */
};

/** A row made by a realloc, and what that realloc took. */
struct block_match_taken {
	uint32_t row;
	uint32_t from; /**< another row, or BLOCK_MATCH_END + an end */
};
#define BLOCK_MATCH_END 0x80000000u

/** Sums of a site: what began there, and the part of it that was freed in the event block. */
struct block_match_sum {
	uint64_t count, bytes, given_count, given_bytes;
	uint32_t realloc_count, moved_count, temporary_count;
};

/** The last site of a stack, as a hint. */
struct block_match_note {
	uint32_t stack, entry, site;
};

enum { BLOCK_MATCH_NOTE_BITS = 11 };

/** Zero it to begin. Row numbers are indexes in `rows`, in the order of their beginnings. Arrays are freed by
    block_match_fini(). */
struct block_match {
	/** so far the rows are those that the points give one by one, and the other fields are valid; false: the points
	    must be matched one by one */
	bool is_plain;
	struct heap_allocation *rows; /**< each row's site is an index in `sites` */
	/** `previous` is not set; it is in `taken`. Points are counted from the first one of the match on */
	struct heap_details *details;
	uint32_t count;
	uint32_t *open; /**< rows that are live at the block's end */
	uint32_t open_count;
	uint64_t *fresh; /**< addresses that must have no live block before the event block */
	uint32_t fresh_count;
	struct block_match_end *ends;
	uint32_t end_count;
	struct block_match_taken *taken;
	uint32_t taken_count;
	bool takes_before; /**< the first row came from a realloc that took a block from before these points */
	/** as block_match_taken.from, of a realloc that has not begun its row yet; or HEAP_NONE */
	uint32_t last_realloc_from;
	struct heap_site *sites;      /**< may have duplicates */
	struct block_match_sum *sums; /**< by site */
	uint32_t site_count;
	uint32_t *site_ids;   /**< by site: its number in the table, filled in by the caller */
	uint32_t first_point; /**< ordinal of the first point, filled in by the caller */
	/** by point: growth of the live bytes (modulo 2^64 if they shrink), without `ends` */
	uint64_t *changes;
	uint64_t sum_bytes;  /**< sum of `changes` */
	uint64_t most_bytes; /**< the largest sum of `changes` from the first one on */
	uint64_t open_bytes;
	uint32_t last_alloc; /**< the row that the last point began, or HEAP_NONE */

	/* Used only while it is made. */
	uint32_t *begin_of, *end_of; /* by row: its points; HEAP_NONE: the row stays live */
	uint32_t *ended;             /* by point that is an End: as block_match_taken.from */
	uint64_t *cells;             /* by address */
	size_t cell_capacity;
	uint32_t cell_bits;
	struct block_match_note *notes;
	size_t capacity;
};

/** Match `count` points of the block, given in order of time. */
void block_match_make(struct block_match *match, const struct trace_block *block, const struct point_place *places,
		      uint32_t count);
/** Free the arrays. */
void block_match_fini(struct block_match *match);

#endif
