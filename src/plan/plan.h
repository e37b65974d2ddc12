/* SPDX-License-Identifier: MIT */
/**
 * A question as a value: where rows come from, which of them pass, what is shown of them or added up, in which order,
 * and how many. It runs over columns on all processors.
 *
 *     plan_init(&plan, PLAN_ALLOCATIONS);
 *     uint32_t size = plan_column(&plan, PLAN_SIZE);
 *     plan.filter = plan_apply(&plan, PLAN_GREATER, size, plan_number(&plan, 100), PLAN_NOTHING);
 *     plan_key(&plan, plan_column(&plan, PLAN_STACK));
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
 * order absent comes before all others; PLAN_DESCENDING turns that round, too.
 */
#ifndef XHEAP_PLAN_PLAN_H
#define XHEAP_PLAN_PLAN_H

#include "query/filter.h"

enum plan_source { PLAN_ALLOCATIONS, PLAN_EVENTS };

enum plan_type {
	PLAN_TRUTH,  /**< 0 or 1 */
	PLAN_NUMBER, /**< uint64_t; operations wrap */
	PLAN_TIME,   /**< int64_t, ns since the trace's start; operations wrap */
	PLAN_REAL    /**< double; of averages only, no operation takes it */
};

/* The columns: id, name, type, of allocations, of events. Names are those of dump, where dump has the column. Ids are
   places in the trace's lists. A column that the source lacks cannot be named. */
#define PLAN_COLUMNS(X) \
	X(ID, "id", NUMBER, true, true)                     /* the row's number; of events dump's seq */ \
	X(PROCESS, "process", NUMBER, true, true)           /* id */ \
	X(PID, "pid", NUMBER, true, true)                   /* absent: not known */ \
	X(THREAD, "thread", NUMBER, true, true)             /* id; absent of earlier blocks */ \
	X(TID, "tid", NUMBER, true, true)                   /* absent of earlier blocks */ \
	X(HEAP, "heap", NUMBER, true, true)                 /* handle; absent without a heap */ \
	X(HEAP_ID, "heap_id", NUMBER, true, true)           /* id; absent without a heap */ \
	X(ADDRESS, "address", NUMBER, true, true)           /* absent of events without a block */ \
	X(SIZE, "size", NUMBER, true, true)                 /* absent of frees that name none */ \
	X(USABLE, "usable", NUMBER, true, true)             /* absent: not known */ \
	X(STACK, "stack_id", NUMBER, true, true)            /* node; absent: not recorded */ \
	X(FUNCTION, "function_id", NUMBER, true, true)      /* place in the entries; absent of earlier blocks */ \
	X(BIRTH, "birth_ns", TIME, true, false)             /* absent of earlier blocks */ \
	X(END, "end_ns", TIME, true, false)                 /* absent of blocks that are open at the trace's end */ \
	X(END_KIND, "end_kind", NUMBER, true, false)        /* enum heap_end */ \
	X(FLAGS, "flags", NUMBER, true, true)               /* enum heap_allocation_flag; enum event_flag */ \
	X(LIFETIME, "lifetime_ns", TIME, true, false)       /* or the age; absent of earlier blocks */ \
	X(SITE, "site_id", NUMBER, true, false)             /* in the table's sites */ \
	X(FREE_SITE, "free_site_id", NUMBER, true, false)   /* absent: never freed */ \
	X(FREE_STACK, "free_stack_id", NUMBER, true, false) /* node; absent: none */ \
	X(FREE_FUNCTION, "free_function_id", NUMBER, true, false) /* absent: none */ \
	X(FREE_THREAD, "free_thread", NUMBER, true, false)        /* id; absent: none */ \
	X(FREE_TID, "free_tid", NUMBER, true, false)              /* absent: none */ \
	X(PREVIOUS, "previous_id", NUMBER, true, false)      /* the allocation that the realloc took; absent: none */ \
	X(WEIGHT_COUNT, "weight_count", NUMBER, true, false) /* blocks it stands for: 1 unless sampled */ \
	X(WEIGHT_BYTES, "weight_bytes", NUMBER, true, false) \
	X(EVENT_TIME, "time_ns", TIME, false, true) \
	X(DURATION, "duration_ns", TIME, false, true)                /* absent: not recorded */ \
	X(ACTION, "action", NUMBER, false, true)                     /* enum event_kind */ \
	X(PREVIOUS_ADDRESS, "previous_address", NUMBER, false, true) /* absent: none */ \
	X(ARGUMENT, "argument", NUMBER, false, true) \
	X(ARGUMENT_2, "argument_2", NUMBER, false, true) \
	X(RESULT, "result", NUMBER, false, true) /* errno of a failed call, 0; absent: in flight */

#define X(id, name, type, of_allocations, of_events) PLAN_##id,
enum plan_column { PLAN_COLUMNS(X) PLAN_COLUMN_COUNT };
#undef X

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
	PLAN_BATCH = 256       /**< rows that are computed at a time */
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
	uint64_t number;         /**< of a constant: its bits; of a column: enum plan_column */
	const struct plan_lookup *lookup;
};

enum plan_aggregate_kind { PLAN_COUNT, PLAN_SUM, PLAN_LEAST, PLAN_GREATEST, PLAN_AVERAGE };

struct plan_aggregate {
	enum plan_aggregate_kind kind;
	uint32_t node; /**< PLAN_COUNT: PLAN_NOTHING counts rows, a node values that are not absent */
};

struct plan_order {
	uint32_t output; /**< its number: outputs, or keys and then aggregates */
	bool is_descending;
};

/** A plan. Begin it with plan_init(). Lookups stay the caller's and must outlive its runs. */
struct plan {
	enum plan_source source;
	/** of allocations: they pass this, too, prepared with the table; NULL: all do */
	const struct heap_filter *allocations;
	uint32_t filter; /**< a node of type PLAN_TRUTH; PLAN_NOTHING: all rows pass */
	uint32_t outputs[PLAN_OUTPUTS_MAX],
		output_count; /**< shown of each row, if there is neither key nor aggregate */
	uint32_t keys[PLAN_OUTPUTS_MAX], key_count;
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
void plan_init(struct plan *plan, enum plan_source source);
/** Free the plan. */
void plan_fini(struct plan *plan);

/** Return a node for a column; PLAN_NOTHING: the source lacks it. */
uint32_t plan_column(struct plan *plan, enum plan_column column);
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
	return plan_is_grouped(plan) ? plan->key_count + plan->aggregate_count : plan->output_count;
}

/** Return the type of an output: of a key, aggregate, ... */
enum plan_type plan_output_type(const struct plan *plan, uint32_t output);

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
    keys. Rows that an order has equal keep that order among them. Return 1; 0 at the end; or a negative errno with the
    reason in `diag`, after which there are no more: -ECANCELED; -ENOMEM, with the operation that passed its memory;
    -EOVERFLOW: a sum is above 2^64. If the table's index is damaged, -EIO: make it anew and run again. */
int plan_next(struct plan_run *run, struct plan_rows *rows, struct diag *diag);

/** End the run, at any time, and free it; NULL is allowed. */
void plan_close(struct plan_run *run);

#endif
