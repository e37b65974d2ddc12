/* SPDX-License-Identifier: MIT */
/**
 * Allocations as few bytes: a group of up to 256 of them, column by column. A column has what its numbers have in common and the rest in
 * as few bits as most of them need; those that need more are exceptions, whole, behind it (the coding known as patched frame of reference).
 * What few reports ask for (struct heap_details) is apart.
 *
 *     column   width in bits (1 byte), exceptions (1 byte), their bytes each (1 byte), least number (LEB128),
 *              numbers less the least, low bits first, to a whole byte; places of exceptions (1 byte each), exceptions less the least
 */
#ifndef XHEAP_HEAP_PACK_H
#define XHEAP_HEAP_PACK_H

#include "heap/allocation.h"
#include "trace/bytes.h"

enum { PACK_ROWS = 256, PACK_SLACK_BYTES = 8 /* to be had behind packed bytes, whatever is in them */ };

/** The end of an allocation that was packed without. */
struct pack_end {
	uint8_t row;                 /**< of the group */
	uint8_t end, flags;
	uint32_t end_site, end_thread;
	int64_t end_ns;
};

/** What numbers of a group have to be below, and what it takes from elsewhere. */
struct pack_limits {
	uint32_t sites, threads, heaps;
	int64_t open_ns;             /**< when open allocations end */
};

/** Add a group's packed rows, or what is apart of them. When memory runs out, bytes->has_failed. */
void pack_rows(struct bytes *bytes, const struct heap_allocation *allocations, uint32_t count);
void pack_details(struct bytes *bytes, const struct heap_allocation *allocations, const struct heap_details *details, uint32_t first, uint32_t count);
void pack_ends(struct bytes *bytes, const struct heap_allocation *allocations, const struct pack_end *ends, uint32_t count);

/**
 * The reverse, of bytes that may be anything: false when they are no group of `count` rows within the limits. Behind `size` bytes
 * PACK_SLACK_BYTES can be read. `first` is the first row's number. What is not whole has neither heap nor end_site.
 */
bool unpack_rows(const uint8_t *data, size_t size, struct heap_allocation *allocations, uint32_t count, const struct pack_limits *limits, bool is_whole);
bool unpack_details(const uint8_t *data, size_t size, const struct heap_allocation *allocations, struct heap_details *details, uint32_t first,
		    uint32_t count, const struct pack_limits *limits);
/** Ends of rows that are there already: into allocations, and details where that is not NULL. */
bool unpack_ends(const uint8_t *data, size_t size, struct heap_allocation *allocations, struct heap_details *details, uint32_t count,
		 uint32_t end_count, const struct pack_limits *limits);

#endif
