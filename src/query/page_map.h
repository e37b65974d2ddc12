/* SPDX-License-Identifier: MIT */
/**
 * The pages that blocks lie in at a moment: how full they are, whose they are, how old. Runs of pages that are alike
 * are one, so that the number of pages does not matter.
 */
#ifndef XHEAP_QUERY_PAGE_MAP_H
#define XHEAP_QUERY_PAGE_MAP_H

#include "query/filter.h"

/** X(id, sign in a map, word of CSV, words for people): how much of a page live blocks cover. */
#define PAGE_FULLNESSES(X) \
	X(NONE, '_', "none", "no live block") \
	X(LITTLE, '.', "little", "less than 1/4") \
	X(QUARTER, '-', "quarter", "1/4 to 1/2") \
	X(HALF, '+', "half", "1/2 to 3/4") \
	X(FULL, '#', "full", "3/4 to full")

enum page_fullness {
#define X(id, sign, word, words) PAGE_##id,
	PAGE_FULLNESSES(X)
#undef X
		PAGE_FULLNESS_COUNT
};

/** Pages in a row, of one process, equally full. */
struct page_run {
	uint32_t process;  /**< place in the trace's list */
	uint32_t site;     /**< of the block with the most bytes on each of the pages; HEAP_NONE: no block is live */
	uint64_t first;    /**< address of the first page */
	uint64_t count;    /**< pages */
	uint64_t bytes;    /**< that live blocks requested here */
	uint64_t blocks;   /**< live blocks that lie here, in part at least */
	int64_t oldest_ns; /**< when the oldest of them began; 0: before the trace, or there are none */
	enum page_fullness fullness;
};

/** Begin with zeros. */
struct page_map {
	struct page_run *runs; /**< by process and address */
	size_t count, capacity;
};

/** Return why a table has no map, for people; NULL: it has one. */
const char *page_map_missing(const struct heap_table *table);

/** Make the map of the pages with blocks that pass the filter, which has a moment. How full a page is, and all other
 *  facts of it, is of all live blocks. If all pass, pages in which others lay up to then have no live block. Of blocks
 *  that overlap, which no allocator hands out, a page has the first one. End it with page_map_fini(). */
void page_map_make(struct page_map *map, const struct heap_table *table, const struct heap_filter *filter);

/** Make the same without pages that have no live block, which takes a part of the time. */
void page_map_make_live(struct page_map *map, const struct heap_table *table, const struct heap_filter *filter);

/** Free the runs. */
void page_map_fini(struct page_map *map);

#endif
