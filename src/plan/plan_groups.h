/* SPDX-License-Identifier: MIT */
/** Rows added up by their keys. */
#ifndef XHEAP_PLAN_PLAN_GROUPS_H
#define XHEAP_PLAN_PLAN_GROUPS_H

#include "plan/evaluate.h"
#include "plan/records.h"

/** Memory of all threads together. */
struct plan_memory {
	uint64_t used_bytes, limit_bytes;
	bool is_exceeded;
	const bool *is_cancelled; /**< when it is set, joining ends soon; NULL: it is never set */
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
};

/** The groups of one thread. A group is a record: the keys, a word with a bit for each absent one, a struct plan_sum
    for each aggregate, and the place of its first row if the plan keeps the order of those. */
struct plan_groups {
	const struct plan *plan;
	struct plan_memory *memory;
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

void plan_groups_begin(struct plan_groups *groups, const struct plan *plan, struct plan_memory *memory);
/** Add the rows of a batch that pass. Return false if the memory is exceeded. */
bool plan_groups_add(struct plan_groups *groups, const struct plan_evaluation *evaluation,
		     const uint64_t passes[PLAN_WORDS], const struct row_places *places);
/** Of a plan without keys: add its group, if no row was added. Return as plan_groups_add(). */
bool plan_groups_add_none(struct plan_groups *groups);
/** Add the groups of another thread. Return as plan_groups_add(). */
bool plan_groups_merge(struct plan_groups *groups, const struct plan_groups *from);
/** Do the plan's regrouping: give the groups their keys, and join those of equal ones. Return as plan_groups_add(). */
bool plan_groups_regroup(struct plan_groups *groups);
/** Set the result's record of a group (plan/records.h). Return the aggregate whose sum has no room, or PLAN_NOTHING. */
uint32_t plan_groups_record(const struct plan_groups *groups, uint32_t group, uint64_t *record);
void plan_groups_end(struct plan_groups *groups);
/** Return whether each group is found by its keys (base/check.h). */
bool plan_groups_are_valid(const struct plan_groups *groups);

/** Return the value of a sum. Return false if it has no room; *is_absent: there is none. */
bool plan_sum_value(const struct plan_sum *sum, enum plan_aggregate_kind kind, enum plan_type type, uint64_t *value,
		    bool *is_absent);
/** Add a value. */
void plan_sum_add(struct plan_sum *sum, enum plan_aggregate_kind kind, enum plan_type type, uint64_t value);

#endif
