/* SPDX-License-Identifier: MIT */
/**
 * A question as a value: where rows come from, which of them pass, what is shown of them or added up, in which order,
 * and how many. It runs over columns on all processors.
 *
 *     plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
 *     uint32_t size = plan_column(&plan, COLUMN_SIZE);
 *     plan.filter = plan_apply(&plan, PLAN_GREATER, size, plan_number(&plan, 100), PLAN_NOTHING);
 *     plan_key(&plan, plan_column(&plan, COLUMN_STACK));
 *     plan_aggregate(&plan, PLAN_SUM, size);
 *     plan_order(&plan, 1, true);
 *     plan.limit = 10;
 *     struct plan_run *run = plan_open(&plan, &target);
 *     while (plan_next(run, &rows, &diag) > 0)
 *             ... plan_cell(&rows, i, 0) is the stack, plan_cell(&rows, i, 1) the bytes ...
 *     plan_close(run);
 *
 * Expressions are typed. A function that cannot make a node returns PLAN_NOTHING, and so does each function with
 * such an operand: the caller checks once, at the end. A value may be absent: the end of an open block, the quotient
 * of a division by 0. An operation on an absent value is absent, with these exceptions:
 *
 *     PLAN_AND, PLAN_OR   three-valued: false and absent is false, true or absent is true
 *     PLAN_IS_ABSENT      true or false
 *     PLAN_IF_ABSENT      the second operand where the first one is absent
 *     PLAN_CHOOSE         absent where the condition is; of the two others only the chosen one counts
 *
 * A row passes the filter if the filter is true, not if it is false or absent. Aggregates leave out absent values:
 * a sum of none is 0, a least, greatest and average of none is absent. As a key, absent is a value like others. In an
 * order absent comes behind all others, also where the greatest comes first.
 */
#ifndef XHEAP_PLAN_PLAN_H
#define XHEAP_PLAN_PLAN_H

#include "columns/column.h"
#include "query/filter.h"

enum plan_type {
	PLAN_TRUTH,  /**< 0 or 1 */
	PLAN_NUMBER, /**< uint64_t; operations wrap */
	PLAN_TIME,   /**< int64_t, ns since the trace's start; operations wrap */
	PLAN_REAL    /**< double; of averages only, no operation takes it */
};

/* Columns (columns/column.h) of TYPE_TIME are PLAN_TIME, others PLAN_NUMBER. */

/* The operators: id, word for messages, operands. Both sides of a comparison, an operation and a choice have one type.
   Times are compared, added and subtracted; other operations are of numbers. */
/* clang-format off */
#define PLAN_OPERATORS(X) \
	X(COLUMN, "column", 0) X(CONSTANT, "constant", 0) X(LOOKUP, "lookup", 1) \
	X(EQUAL, "==", 2) X(UNEQUAL, "!=", 2) X(LESS, "<", 2) X(AT_MOST, "<=", 2) X(GREATER, ">", 2) \
	X(AT_LEAST, ">=", 2) X(AND, "&&", 2) X(OR, "||", 2) X(NOT, "!", 1) X(IS_ABSENT, "is absent", 1) \
	X(IF_ABSENT, "if absent", 2) X(CHOOSE, "?:", 3) X(ADD, "+", 2) X(SUBTRACT, "-", 2) X(MULTIPLY, "*", 2) \
	X(DIVIDE, "/", 2) X(REMAINDER, "%", 2) X(BITS_AND, "&", 2) X(BITS_OR, "|", 2) X(BITS_XOR, "^", 2) \
	X(SHIFT_LEFT, "<<", 2) X(SHIFT_RIGHT, ">>", 2) /* by 64 and more: 0 */ \
	X(AS_NUMBER, "as number", 1) /* of a time (negative: absent) and a truth */ \
	X(AS_TIME, "as time", 1)     /* of a number; above INT64_MAX: absent */
/* clang-format on */

#define X(id, word, operands) PLAN_##id,
enum plan_operator { PLAN_OPERATORS(X) PLAN_OPERATOR_COUNT };
#undef X

/** No node. */
#define PLAN_NOTHING UINT32_MAX

enum {
	PLAN_OUTPUTS_MAX = 48, /**< keys and aggregates, or outputs */
	PLAN_NODES_MAX = 4096, /**< of all expressions of a plan */
	PLAN_BATCH = PACK_ROWS /**< rows that are computed at a time */
};

/** A value for each of the numbers from 0 up: of a stack, a site, a thread, ... So a condition on texts is computed
    once for each of them. Numbers from `count` on have none. */
struct plan_lookup {
	enum plan_type type;
	const uint64_t *values; /**< of PLAN_TRUTH 0 or 1 */
	const bool *is_absent;  /**< NULL: none is */
	uint64_t count;
};

struct plan_node {
	uint8_t operation, type; /**< enum plan_operator, enum plan_type */
	bool is_absent;          /**< of a constant */
	uint32_t operands[3];    /**< nodes before this one; PLAN_NOTHING: none */
	uint64_t number;         /**< of a constant: its bits; of a column: enum column_id */
	const struct plan_lookup *lookup;
};

enum plan_aggregate_kind { PLAN_COUNT, PLAN_SUM, PLAN_LEAST, PLAN_GREATEST, PLAN_AVERAGE };

struct plan_aggregate {
	enum plan_aggregate_kind kind;
	uint32_t node; /**< PLAN_COUNT: PLAN_NOTHING counts rows, a node values that are not absent */
};

struct plan_order {
	uint32_t output; /**< its number: outputs; or keys, then aggregates, then computed values */
	bool is_descending;
};

/** Keys of groups that are found by keys of rows, once for each group and not for each row: the text of a stack by its
    id. Groups whose keys become equal are joined. The thread that runs the plan makes the calls. */
struct plan_key_function {
	/** Replace all keys of a group, and their bits of absent values; an absent key is 0. */
	void (*replace)(void *context, uint64_t *keys, uint64_t *absent);
	void *context;
};

struct plan_rows;

/** A look at each group before groups are ordered. The thread that runs the plan makes the calls. */
struct plan_group_function {
	/** Set the numbers that the caller computes of the group: values[i], and a bit of *absent for each without one.
	    `group` is one row, whose computed values are not there yet. Return false to leave the group out. */
	bool (*finish)(void *context, const struct plan_rows *group, uint64_t *values, uint64_t *absent);
	void *context;
	uint32_t count; /**< of the computed values: outputs behind the aggregates */
};

/** A plan. Begin it with plan_init(). Lookups and functions stay the caller's and must outlive its runs. */
struct plan {
	enum column_source source;
	/** of allocations: they pass this, too, prepared with the table; NULL: all do */
	const struct heap_filter *allocations;
	uint32_t filter; /**< a node of type PLAN_TRUTH; PLAN_NOTHING: all rows pass */
	uint32_t outputs[PLAN_OUTPUTS_MAX],
		output_count; /**< shown of each row, if there is neither key nor aggregate */
	uint32_t keys[PLAN_OUTPUTS_MAX], key_count;
	const struct plan_key_function *regrouping;  /**< NULL: rows have the keys of their groups */
	const struct plan_group_function *finishing; /**< set before plan_order(); NULL: groups are as they are */
	bool keeps_first_order; /**< groups come in the order of their first rows, not of their keys */
	struct plan_aggregate aggregates[PLAN_OUTPUTS_MAX];
	uint32_t aggregate_count;
	struct plan_order orders[PLAN_OUTPUTS_MAX];
	uint32_t order_count;
	uint64_t skip, limit; /**< rows left out at the beginning; shown at most (UINT64_MAX: all) */
	struct plan_node *nodes;
	uint32_t node_count;
	size_t node_capacity;
};

/** Begin with all rows of the source, in the order of the source, and no outputs. */
void plan_init(struct plan *plan, enum column_source source);
/** Free the plan. */
void plan_fini(struct plan *plan);

/* What was made before is the same node again. */

/** Return a node for a column; PLAN_NOTHING: the source lacks it, or it is a text. */
uint32_t plan_column(struct plan *plan, enum column_id column);
uint32_t plan_number(struct plan *plan, uint64_t number);
uint32_t plan_time(struct plan *plan, int64_t time_ns);
uint32_t plan_truth(struct plan *plan, bool is_true);
/** Return a node for an absent value of a type. */
uint32_t plan_absent(struct plan *plan, enum plan_type type);
/** Return a node for an operation; operands that the operator does not have are ignored. PLAN_NOTHING: the types do
    not fit, or there are PLAN_NODES_MAX nodes. */
uint32_t plan_apply(struct plan *plan, enum plan_operator operation, uint32_t a, uint32_t b, uint32_t c);
/** Return how many operands the operation has. */
unsigned plan_operand_count(enum plan_operator operation);
/** Return a node for the value that the lookup has of a number. */
uint32_t plan_lookup(struct plan *plan, uint32_t number, const struct plan_lookup *lookup);

/** Add an output, a key, an aggregate (of `node`), an order. Return false if the node is PLAN_NOTHING, has a type that
    the aggregate does not take (PLAN_SUM and PLAN_AVERAGE: numbers and times), or there are PLAN_OUTPUTS_MAX. */
bool plan_output(struct plan *plan, uint32_t node);
bool plan_key(struct plan *plan, uint32_t node);
bool plan_aggregate(struct plan *plan, enum plan_aggregate_kind kind, uint32_t node);
bool plan_order(struct plan *plan, uint32_t output, bool is_descending);

/** Return whether rows are added up: there are keys or aggregates. Keys alone give the different values. */
static inline bool plan_is_grouped(const struct plan *plan)
{
	return plan->key_count || plan->aggregate_count;
}

/** Return how many values a row of the result has. */
static inline uint32_t plan_width(const struct plan *plan)
{
	uint32_t computed = plan->finishing ? plan->finishing->count : 0;
	return plan_is_grouped(plan) ? plan->key_count + plan->aggregate_count + computed : plan->output_count;
}

/** Return the type of an output: of a key, aggregate, ... */
enum plan_type plan_output_type(const struct plan *plan, uint32_t output);

/** Return whether the plan is one that the functions above have made (base/check.h). */
bool plan_is_valid(const struct plan *plan);

/* ---- running ---- */

/** What a plan is run over. */
struct plan_target {
	const struct trace *trace;
	const struct heap_table *table;
	uint64_t memory_bytes;    /**< that an operation may use; 0: PLAN_MEMORY_BYTES */
	const char *directory;    /**< of temporary files; NULL: $TMPDIR, else /tmp */
	const bool *is_cancelled; /**< another thread or a signal handler sets it; NULL: nobody does */
};
#define PLAN_MEMORY_BYTES (UINT64_C(256) << 20)

/** A value of the result. */
struct plan_value {
	enum plan_type type;
	bool is_absent;
	union {
		uint64_t number; /**< also of PLAN_TRUTH */
		int64_t time_ns;
		double real;
	};
};

/** Rows of the result. */
struct plan_rows {
	const struct plan *plan;
	uint32_t count;
	const uint64_t *cells; /**< plan_cell() reads them */
	uint32_t stride;
};

/** Return a value of row i. */
struct plan_value plan_cell(const struct plan_rows *rows, uint32_t i, uint32_t output);

/** A plan under way. The plan and the target must outlive it; the thread that began it makes all calls. */
struct plan_run;

/** Begin; nothing is read yet. */
struct plan_run *plan_open(const struct plan *plan, const struct plan_target *target);

/** Get the next rows, at least one. Without an order they come as those of dump do, grouped ones in the order of their
    keys, or of their first rows. Rows that an order has equal keep that order among them. Return 1; 0 at the end; or a
    negative errno with the reason in `diag`, after which there are no more: -ECANCELED; -ENOMEM, with the operation
    that passed its memory; -EOVERFLOW: a sum is above 2^64. If the table's index is damaged, -EIO: make it anew and run
    again. */
int plan_next(struct plan_run *run, struct plan_rows *rows, struct diag *diag);

/** End the run, at any time, and free it; NULL is allowed. */
void plan_close(struct plan_run *run);

#endif
