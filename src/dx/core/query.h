/* SPDX-License-Identifier: MIT */
/**
 * A query: an expression that is parsed, checked and evaluated over a trace. Errors at run time are values. A query
 * that must end (Ctrl-C, memory, depth) is stopped: every loop ends at its next step, and stop_text says why.
 */
#ifndef XHEAP_DX_QUERY_H
#define XHEAP_DX_QUERY_H

#include <signal.h>

#include "base/diag.h"
#include "base/sink.h"
#include "dx/core/sequence.h"
#include "dx/core/syntax.h"

struct dx_session;
struct dx_method_call;
struct dx_plan_limits;
struct dx_sum;

/** The variables that are in sight: parameters of lambdas, the innermost first. */
struct dx_scope {
	const struct dx_scope *outer;
	const char *name;
	struct dx_value value;
};

/** A lambda with the variables that were in sight where it stands. */
struct dx_closure {
	const struct dx_node *node;
	const struct dx_scope *scope;
};

/** Another way to the same answers: plans over columns (query_plan.h). Each function leaves to the interpreter what it
    cannot do, by NULL or false; so does one that is NULL, but for the first. */
struct dx_planner {
	/** Return a sequence of the same elements, in the query's arena. */
	const struct dx_sequence *(*sequence)(struct dx_query *query, const struct dx_sequence *sequence);
	/** Answer Count(). */
	bool (*count)(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result);
	/** Add up for Sum(); for Average() count values and absent ones, too. */
	bool (*sum)(struct dx_query *query, const struct dx_method_call *call, bool is_average, struct dx_sum *sum);
	/** Answer Max(), or Min(), of at least one value. */
	bool (*extreme)(struct dx_query *query, const struct dx_method_call *call, bool is_greatest,
			struct dx_value *result);
};

/** The elements that an iterator comes to, if they are known before: what is searched for for one of them may be found
    for all of them at once. It is a part of the iterator's state. */
struct dx_ahead {
	struct dx_query *query; /**< NULL: not set yet */
	/** Set the value of element i, in the query's arena if it is made. False: there is none. */
	bool (*get)(struct dx_query *query, const struct dx_ahead *ahead, uint32_t i, struct dx_value *value);
	const void *context;
	uint32_t next, count; /**< next: behind the element that was set last */
};

enum { DX_EXPLAINED_MAX = 32 };

/** What is found out of a query's plans for -explain. */
struct dx_explanation {
	struct sink *out;
	const char *reason,
		*operation; /**< why the sequence under way has no plan, and of which method; NULL: not known */
	int column;
	int columns[DX_EXPLAINED_MAX]; /**< of the sequences that are explained */
	unsigned count;
};

struct dx_query {
	struct dx_session *session;
	struct dx_budget budget;
	struct dx_arena *arena; /**< of results and of steps */
	struct dx_arena whole;  /**< what lives as long as the query: `arena`, at first */
	unsigned depth;
	bool is_stopped;
	const struct dx_planner *planner;   /**< NULL: nothing is evaluated in another way than it is written */
	struct dx_plan_limits *limits;      /**< of columns, as plans have found them; NULL: of none yet */
	struct dx_explanation *explanation; /**< NULL: nobody asks for it */
	int stop_column;                    /**< -1: of no place */
	char stop_text[256];
	const volatile sig_atomic_t *is_interrupted; /**< NULL: it cannot be */
	const bool *is_cancelled;                    /**< the same, for plans */
	uint64_t steps_max, steps;                   /**< steps_max 0: any number */
	const struct dx_ahead *ahead;                /**< of the iterator that set an element last; NULL: not known */
	unsigned lambda_depth;                       /**< lambdas that are being called */
	char note[128];                              /**< what is said behind the answer: absent values that it met */
};

/** Say behind the answer what a method met, unless a lambda has called it. The first such note counts. */
__attribute__((format(printf, 2, 3))) void dx_note(struct dx_query *query, const char *format, ...);

/** Make it the query's, with one element more that is set. */
void dx_ahead_pass(struct dx_query *query, struct dx_ahead *ahead);

/** End it, when the iterator is closed. */
void dx_ahead_end(struct dx_ahead *ahead);

/** Begin a query of at most limit_bytes. End it with dx_query_fini(). */
void dx_query_init(struct dx_query *query, struct dx_session *session, size_t limit_bytes,
		   const volatile sig_atomic_t *is_interrupted);

/** End the query and all that it has made. */
void dx_query_fini(struct dx_query *query);

/** Make a step of a loop of the operator `name`. False: the query is to end. */
bool dx_step(struct dx_query *query, const char *name, int column);

/** Stop the query. */
__attribute__((format(printf, 3, 4))) void dx_stop(struct dx_query *query, int column, const char *format, ...);

/** Go one level deeper; false, and the query is stopped, if that is too deep. dx_leave() follows in any case. */
bool dx_enter(struct dx_query *query);
void dx_leave(struct dx_query *query);

/** Return the elements of the value: a sequence, or an object that has elements. False: it has none. */
bool dx_elements(struct dx_query *query, const struct dx_value *value, struct dx_value *sequence);

#endif
