/* SPDX-License-Identifier: MIT */
/**
 * The resident memory of a process at the time of a reading, to the byte: each resident byte is in one class.
 *
 *     runs of resident pages + blocks live then, and those in caches of threads, by address
 *         -> parts of each page: blocks, their rounding, caches, and the rest
 *         -> the rest by what keeps it: few blocks, more blocks, or by where it lies: inside a heap that can be
 *            trimmed, at the end of an arena, in memory of another allocator, ...
 *
 * Pages where no block may lie are in the class of their mapping.
 */
#ifndef XHEAP_QUERY_ACCOUNT_H
#define XHEAP_QUERY_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/memory_rows.h"

struct heap_table;
struct resident;
struct trace_dictionary;

/** X(id, key of reports, words for people): the classes. */
#define ACCOUNT_CLASSES(X) \
	X(LIVE, "live", "live blocks") \
	X(ROUNDING, "rounding", "rounding and heads of blocks") \
	X(PINNED, "pinned", "free, on pages that few blocks keep") \
	X(BETWEEN, "between_blocks", "free, between blocks on other pages") \
	X(TRIMMABLE, "trimmable", "free pages that malloc_trim(0) returns") \
	X(UNTRIMMABLE, "untrimmable", "free pages of glibc's heaps that it does not return") \
	X(CACHES, "thread_caches", "caches of threads") \
	X(TOPS, "arena_tops", "ends of arenas, which it does not return") \
	X(ALLOCATORS, "other_allocators", "kept by other allocators") \
	X(STACKS, "stacks", "stacks") \
	X(FILES, "files", "code and files") \
	X(SHARED, "shared", "shared memory") \
	X(RECORDER, "recorder", "the recorder") \
	X(OTHER, "other", "the kernel's own mappings") \
	X(MAPPED, "mapped", "mapped by the program itself, without blocks") \
	X(UNKNOWN, "unknown", "unknown")

enum account_class {
#define X(id, key, words) ACCOUNT_##id,
	ACCOUNT_CLASSES(X)
#undef X
		ACCOUNT_CLASS_COUNT
};

/** Keys and words. */
extern const char *const account_keys[ACCOUNT_CLASS_COUNT], *const account_words[ACCOUNT_CLASS_COUNT];

/** A sum. */
struct account_sum {
	uint64_t bytes[ACCOUNT_CLASS_COUNT];
	uint64_t resident_bytes; /**< of all classes */
};

/** A mapping where blocks may lie. */
struct account_mapping {
	uint64_t base, end; /**< of its resident pages */
	uint8_t kind;       /**< enum trace_mapping_kind */
	uint32_t heap;      /**< of the trace: of blocks that lie, or lay, in it; HEAP_NONE: of glibc, or none */
	struct account_sum sum;
};

/** The blocks of a site, and the pages that they keep: those that all blocks cover by less than a quarter, and these
    by more than blocks of any other site. */
struct account_site {
	uint32_t site;
	uint64_t live_bytes, rounding_bytes, block_count; /**< resident; block_count: blocks with a resident byte */
	uint64_t page_bytes;                              /**< of these pages */
	uint64_t alone_bytes;                             /**< of these, where no other block lies */
	uint64_t kept_bytes, kept_count;                  /**< its blocks that begin on these pages */
};

/** The account. Zero it to begin, but for has_caches; end it with account_fini(). */
struct account {
	uint32_t process;
	int64_t time_ns; /**< of the reading */
	uint64_t huge_bytes, swapped_bytes;
	struct account_sum sum;
	struct account_sum *heaps; /**< by heap of the trace; the last one: of no heap */
	uint32_t heap_count;
	struct account_mapping *mappings; /**< by address */
	uint32_t mapping_count, mapping_capacity;
	struct account_site *sites; /**< in no order */
	uint32_t site_count, site_capacity;
	uint64_t page_bytes, kept_bytes, kept_count; /**< of all sites */
	bool has_glibc;                              /**< blocks of glibc lie, or lay, in the process */
	/** the caches of glibc's threads are known; before account_make(): they are wanted, which doubles the time.
	    Otherwise what is in them is free */
	bool has_caches;
};

/** Make the account of a reading. The blocks of processes that the process was forked from count as its own if they
    were live at the fork: nobody knows whether it freed its copies. */
void account_make(struct account *account, const struct heap_table *table, const struct trace_pages *pages);

/** Free the account. */
void account_fini(struct account *account);

/** Tell heap from the rest of a process's resident memory, at the time of the account. The split of `resident` is that
    of the account's reading then. */
void account_tell(const struct account *account, struct resident *resident, const struct trace_dictionary *dictionary);

/** Which reading is wanted. HIGH: the last one of nearly as much as the largest, seven eighths. */
enum account_moment { ACCOUNT_LARGEST, ACCOUNT_LAST, ACCOUNT_NEAREST, ACCOUNT_HIGH };

/** Return the reading of a process (TRACE_NONE: of any) that is the largest, or the last, or the nearest one to a
    time, of equal ones the later; NULL: there is none. */
const struct trace_pages *account_reading(const struct heap_table *table, uint32_t process, enum account_moment which,
					  int64_t time_ns);

#endif
