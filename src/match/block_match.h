/* SPDX-License-Identifier: MIT */
/**
 * What points of one event block tell by themselves, as long as no other points lie between them: which allocations
 * begin there, and which of these end there. Only the rest has to be looked for among all that is live (match/match.c).
 * One can be made in any thread.
 */
#ifndef XHEAP_MATCH_BLOCK_MATCH_H
#define XHEAP_MATCH_BLOCK_MATCH_H

#include "match/point_stream.h"
#include "table/table.h"

/** An end of what began before the event block. */
struct block_match_end {
	uint64_t address;
	int64_t time_ns;
	uint32_t id;    /**< of the allocation, when it has been found */
	uint32_t place; /**< of the points */
	uint32_t site;  /**< place in sites */
	uint8_t end;    /**< enum heap_end */
};

/** A row that came from a realloc, and what that took. */
struct block_match_taken {
	uint32_t row;
	uint32_t from; /**< another row, or WITHIN_END + an end */
};
#define WITHIN_END 0x80000000u

/** What begins at a site, and what of that is given back in the event block. */
struct block_match_sum {
	uint64_t count, bytes, given_count, given_bytes;
	uint32_t realloc_count, moved_count, temporary_count;
};

struct block_match_note {
	uint32_t stack, entry, site;
};

enum { WITHIN_NOTE_BITS = 11 };

/** Zero it to begin. Numbers of rows are places in `rows`, in the order of their beginnings. */
struct block_match {
	bool is_plain;                /**< the rest holds; false: it takes all of the table to tell, point by point */
	struct heap_allocation *rows; /**< sites are places in sites */
	struct heap_details *details; /**< what they came from is in taken */
	uint32_t count;
	uint32_t *open; /**< rows that live at the block's end */
	uint32_t open_count;
	uint64_t *fresh; /**< addresses that have to be nobody's before the block */
	uint32_t fresh_count;
	struct block_match_end *ends;
	uint32_t end_count;
	struct block_match_taken *taken;
	uint32_t taken_count;
	bool takes_before; /**< the first row came from a realloc that took something before these points */
	/** as realloc_source.from: what a realloc took that has not begun a row yet; or HEAP_NONE */
	uint32_t last_realloc_from;
	struct heap_site *sites;      /**< some may be there twice */
	struct block_match_sum *sums; /**< by site */
	uint32_t site_count;
	uint32_t *site_ids; /**< by site: of the table; who knows them fills them in */
	/** by point: live bytes more, or (less than none) less; those of `ends` are not known */
	uint64_t *changes;
	uint64_t sum_bytes;  /**< of these */
	uint64_t most_bytes; /**< the largest sum of these from the first on */
	uint64_t open_bytes;
	uint32_t last_alloc; /**< a row that the last point began, or HEAP_NONE */

	/* While it is made. */
	uint32_t *begin_of, *end_of; /* by row: its points; HEAP_NONE of a row that lives on */
	uint32_t *ended;             /* by point that is an End: as realloc_source.from */
	uint64_t *cells;             /* by address */
	size_t cell_capacity;
	uint32_t cell_bits;
	struct block_match_note *notes;
	size_t capacity;
};

/** From points in order of time. */
void block_match_make(struct block_match *local, const struct trace_block *block, const struct point_place *places,
		      uint32_t count);
void block_match_fini(struct block_match *local);

#endif
