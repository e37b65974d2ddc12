/* SPDX-License-Identifier: MIT */
/** Rows added up by their keys. */
#ifndef XHEAP_PLAN_PLAN_GROUPS_H
#define XHEAP_PLAN_PLAN_GROUPS_H

#include "plan/evaluate.h"
#include "plan/records.h"

/** Where groups go that have no room in memory, and how they are ordered there. Threads share it. */
struct group_spill {
	struct record_order order; /**< by keys */
	struct run_file *file;
};

/** The sums of an aggregate: of `count` values, in 128 bits; of a least or greatest one the value in `low`. */
struct plan_sum {
	uint64_t count, low, high;
};

/** The aggregates of a plan that counts rows and sums a number, and does nothing else. */
struct aggregate_places {
	bool is_pair; /**< the plan is such a one */
	uint32_t count, sum;
};

/** The places of a batch's rows among all rows. A place is a number and one more, which orders those of one number. */
struct row_places {
	const int64_t
		*times; /**< the first numbers; NULL: they begin with `first` and grow by 1, without second ones */
	uint64_t first; /**< of `times`: the second numbers begin with it and grow by 1 */
	/** Times that are not known yet: return them, when a row may be the first of its group; NULL: they cannot be
	    found. No row is before `least_ns`. */
	const int64_t *(*find)(void *context);
	void *context;
	int64_t least_ns;
};

/** The groups of one thread. A group is a record (plan/records.h): the keys, a word with a bit for each absent one, a
    struct plan_sum for each aggregate, and the place of its first row if the plan keeps the order of those. Groups that
    pass the memory go to a file as a sorted run. */
struct plan_groups {
	const struct plan *plan;
	uint64_t memory_bytes;
	struct records runs; /* in the file; a group may be in several of them, and in memory */
	struct aggregate_places places;
	uint32_t stride; /* words of a group */
	uint64_t *items;
	uint32_t count;
	size_t capacity;
	uint32_t *cells; /* by hash: its number plus one */
	unsigned bits;
	uint32_t *dense; /* by the value of a single small key: its number plus one */
	size_t dense_count;
};

/** Set the order of a plan's groups. */
void group_spill_begin(struct group_spill *spill, const struct plan *plan, struct run_file *file,
		       const bool *is_cancelled);

void plan_groups_begin(struct plan_groups *groups, const struct plan *plan, const struct group_spill *spill,
		       uint64_t memory_bytes);
/** Add the rows of a batch that pass. */
void plan_groups_add(struct plan_groups *groups, const struct plan_evaluation *evaluation,
		     const uint64_t passes[PLAN_WORDS], struct row_places *places);
/** Add a group of other groups of the plan, under these keys. */
void plan_groups_join(struct plan_groups *groups, const uint64_t *keys, const uint64_t *group);
/** Of a plan without keys: add its group, if no row was added. */
void plan_groups_add_none(struct plan_groups *groups);
/** Set the result's record of a group (plan/records.h), whose number is its place among equal ones. Return the
    aggregate whose sum has no room, or PLAN_NOTHING. */
uint32_t plan_group_record(const struct plan *plan, const uint64_t *group, uint64_t number, uint64_t *record);
void plan_groups_end(struct plan_groups *groups);
/** Return whether each group is found by its keys (base/check.h). */
bool plan_groups_are_valid(const struct plan_groups *groups);

/** All groups of several threads, each once. */
struct joined_groups {
	struct plan_groups *first;  /* has all of them, if none are in the file */
	uint32_t next;              /* of these */
	struct record_merge *merge; /* of those in the file; NULL: all are in memory */
	const uint64_t *ahead;      /* the next one of the file */
	uint64_t *group;
};

/** Begin; the threads' groups must outlive it, and change. memory_bytes: for what is read from the file. Return false
    if there are more runs than fit. */
bool joined_groups_begin(struct joined_groups *joined, struct plan_groups *groups, unsigned count,
			 uint64_t memory_bytes);
/** Return the next group, which is there until the next call; NULL: there are no more, or the file has an error. */
const uint64_t *joined_groups_next(struct joined_groups *joined);
void joined_groups_end(struct joined_groups *joined);

/** Return the value of a sum. Return false if it has no room; *is_absent: there is none. */
bool plan_sum_value(const struct plan_sum *sum, enum plan_aggregate_kind kind, enum plan_type type, uint64_t *value,
		    bool *is_absent);
/** Add a value. */
void plan_sum_add(struct plan_sum *sum, enum plan_aggregate_kind kind, enum plan_type type, uint64_t value);

#endif
