/* SPDX-License-Identifier: MIT */
/**
 * Rows of a result as records: the values, a word with a bit for each absent one, and the row's number among all, by
 * which equal rows are ordered. Collected by several threads, sorted, and read in order. What passes the memory budget
 * goes to a temporary file as sorted runs, which are merged.
 */
#ifndef XHEAP_PLAN_RECORDS_H
#define XHEAP_PLAN_RECORDS_H

#include "base/run_file.h"
#include "plan/plan.h"

/** The place of a group's first row among all rows: a time or a number, and the place among those of one time. */
enum { FIRST_ROW_WORDS = 2 };

/** How records are ordered. */
struct record_order {
	uint32_t width; /**< values of a record; behind them come the absent bits and the number */
	/** words of a record; behind the number, of a group in the order of first rows, comes the place of its first */
	uint32_t stride;
	/** when it is set, sorting ends soon, with any of the records in any order; NULL: it is never set */
	const bool *is_cancelled;
	uint32_t count;
	struct {
		uint32_t output; /**< a word of the record */
		uint8_t type;
		bool is_descending;
	} keys[2 * PLAN_OUTPUTS_MAX + FIRST_ROW_WORDS];
};

/** Return the order of a plan's result: its orders; for grouped rows their keys, or first rows, after them. */
void record_order_make(struct record_order *order, const struct plan *plan);

/** Return less than, equal to or greater than 0, as a comes before, is equal to, or comes after b. */
int record_compare(const struct record_order *order, const uint64_t *a, const uint64_t *b);

/** The records of one thread. */
struct records {
	const struct record_order *order;
	struct run_file *spill; /**< for what does not fit into memory; threads share it */
	uint64_t most;          /**< records wanted at most, the first ones of the order; UINT64_MAX: all */
	size_t room;            /**< records that fit into this thread's memory */
	uint64_t *items;
	size_t count, capacity;
	bool has_threshold; /**< the record `most` of those so far is known: later ones must come before it */
	uint64_t *threshold;
	struct run_place *runs;
	uint32_t run_count;
	size_t run_capacity;
};

/** Begin with a share of the memory. */
void records_begin(struct records *records, const struct record_order *order, struct run_file *spill, uint64_t most,
		   uint64_t memory_bytes);
/** Return room for one more record, which the caller fills in before the next call; it is there until then. */
uint64_t *records_add(struct records *records);
/** Return the record that a wanted one must come before, or be equal to; NULL: none is known yet. */
static inline const uint64_t *records_threshold(const struct records *records)
{
	return records->has_threshold ? records->threshold : NULL;
}
/** Sort what is there. */
void records_sort(struct records *records);
/** Write records that lie elsewhere to the file, as a run. */
void records_write(struct records *records, const uint64_t *items, size_t count);
void records_end(struct records *records);

/** Return whether the sums of the records hold (base/check.h); whether they are in order, none twice. */
bool records_are_valid(const struct records *records);
bool records_are_sorted(const struct records *records);

/** All records of several threads, in order. */
struct record_merge;

/** Begin; records_sort() was called for all of them, which must outlive it. memory_bytes: for what is read from the
    file. NULL: there are more runs than fit. */
struct record_merge *record_merge_new(struct records *records, unsigned count, uint64_t memory_bytes);
/** Return the next record, valid until the next call; NULL at the end, or when the file cannot be read (then the
    spill has its error). */
const uint64_t *record_merge_next(struct record_merge *merge);
void record_merge_free(struct record_merge *merge);

#endif
