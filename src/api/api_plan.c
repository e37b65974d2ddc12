/* SPDX-License-Identifier: MIT */
/* Plans as programs make them. A function that cannot be obeyed leaves its reason in the plan. */
#include "api/api_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

_Static_assert(XHEAP_NONE == PLAN_NOTHING, "no node");

enum { NAME_BYTES = 256 };

/* ---- names ---- */

#define X(id, word, operands) word,
static const char *const operation_words[] = {PLAN_OPERATORS(X)};
#undef X
static const char *const aggregate_words[] = {"count", "sum", "least", "greatest", "average"};
enum { AGGREGATE_COUNT = sizeof(aggregate_words) / sizeof(*aggregate_words) };
static const char *const source_words[COLUMN_SOURCES] = {
	[COLUMNS_OF_ALLOCATIONS] = "allocations", [COLUMNS_OF_EVENTS] = "events"};

static bool has_ids(const struct column *column)
{
	return column->type == TYPE_FUNCTION || column->type == TYPE_THREAD;
}

/* The name is the column's with this end, such as "thread" and "_id". */
static bool is_named(const struct column *column, const char *name, const char *end)
{
	size_t length = strlen(column->name);
	return !strncmp(name, column->name, length) && !strcmp(name + length, end);
}

/* What shows a stack: the name has it in place of the column's "stack_id". */
static const struct {
	const char *end;
	uint32_t flag;
} stack_shows[] = {{"stack", NODE_AS_TEXT}, {"caller", NODE_AS_CALLER}};
enum { STACK_SHOWS = sizeof(stack_shows) / sizeof(*stack_shows), STACK_ID_BYTES = sizeof("stack_id") - 1 };

/* Return how the name shows the column of stacks, PLAN_NOTHING: it does not. */
static uint32_t stack_flag_of(const struct column *column, const char *name)
{
	size_t before = column->type == TYPE_STACK ? strlen(column->name) - STACK_ID_BYTES : 0;
	for (size_t i = 0; i < STACK_SHOWS && column->type == TYPE_STACK; i++)
		if (!strncmp(name, column->name, before) && !strcmp(name + before, stack_shows[i].end))
			return stack_shows[i].flag;
	return PLAN_NOTHING;
}

/* How the name shows the column; PLAN_NOTHING: it is not this column's. */
static uint32_t flags_of(const struct column *column, const char *name)
{
	if (!column || column->type == TYPE_TEXT)
		return PLAN_NOTHING;
	if (!strcmp(column->name, name))
		return 0;
	if (has_ids(column) && is_named(column, name, "_id"))
		return NODE_AS_ID;
	return stack_flag_of(column, name);
}

/* ---- calls ---- */

/* A call of one of the functions, and what it returns. */
struct plan_call {
	struct xheap_plan *plan;
	const char *name; /* of a column, an operation, ...; as the caller gave it */
	uint32_t nodes[3];
	uint64_t number;
	const uint64_t *values;
	size_t count;
	bool is_set;
	uint32_t result;
};

/* The first reason counts. Later calls do nothing: they may be about what the first one did not make. */
static uint32_t plan_call(struct plan_call *call, int (*work)(void *context, struct diag *diag))
{
	xheap_error error = {.status = XHEAP_OK};
	call->result = XHEAP_NONE;
	if (!call->plan || call->plan->reason.text[0])
		return XHEAP_NONE;
	if (api_run(NULL, &error, work, call) == XHEAP_OK)
		return call->result;
	diag_fail(&call->plan->reason, EINVAL, "%s", error.text);
	return XHEAP_NONE;
}

static int done(struct plan_call *call, uint32_t result, struct diag *diag, const char *function, const char *reason)
{
	call->result = result;
	return result == PLAN_NOTHING ? diag_fail(diag, EINVAL, "%s: %s", function, reason) : 0;
}

static int column_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	struct plan *plan = &call->plan->plan;
	for (unsigned id = 0; call->name && id < COLUMN_COUNT; id++) {
		uint32_t flags = flags_of(column_find(plan->source, (enum column_id)id), call->name);
		if (flags == PLAN_NOTHING)
			continue;
		uint32_t node = plan_column(plan, (enum column_id)id);
		return done(call, node == PLAN_NOTHING ? node : node | flags, diag, "xheap_plan_column",
			    "the plan is too large");
	}
	return diag_fail(diag, EINVAL, "%s have no column '%s'", source_words[plan->source],
			 call->name ? call->name : "(NULL)");
}

API uint32_t xheap_plan_column(xheap_plan *plan, const char *name)
{
	return plan_call(&(struct plan_call){.plan = plan, .name = name}, column_work);
}

static int number_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	struct plan *plan = &call->plan->plan;
	uint32_t node = call->is_set ? plan_time(plan, (int64_t)call->number) : plan_number(plan, call->number);
	return done(call, node, diag, "xheap_plan_number", "the plan is too large");
}

API uint32_t xheap_plan_number(xheap_plan *plan, uint64_t number)
{
	return plan_call(&(struct plan_call){.plan = plan, .number = number}, number_work);
}

API uint32_t xheap_plan_time(xheap_plan *plan, int64_t time_ns)
{
	return plan_call(&(struct plan_call){.plan = plan, .number = (uint64_t)time_ns, .is_set = true}, number_work);
}

static int word_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	const struct column *column = api_plan_column(call->plan, call->nodes[0]);
	if (!column || !column->words)
		return diag_fail(diag, EINVAL, "xheap_plan_word: the node is no column of words");
	for (uint32_t i = 0; call->name && i < column->word_count; i++)
		if (!strcmp(column->words[i], call->name))
			return done(call, plan_number(&call->plan->plan, i), diag, "xheap_plan_word",
				    "the plan is too large");
	return diag_fail(diag, EINVAL, "xheap_plan_word: '%s' is no word of %s", call->name ? call->name : "(NULL)",
			 column->name);
}

API uint32_t xheap_plan_word(xheap_plan *plan, uint32_t column, const char *word)
{
	return plan_call(&(struct plan_call){.plan = plan, .name = word, .nodes = {column}}, word_work);
}

static int apply_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	enum plan_operator operation = PLAN_EQUAL;
	while (operation < PLAN_OPERATOR_COUNT && (!call->name || strcmp(operation_words[operation], call->name)))
		operation++;
	if (operation == PLAN_OPERATOR_COUNT)
		return diag_fail(diag, EINVAL, "xheap_plan_apply: there is no operation '%s'",
				 call->name ? call->name : "(NULL)");
	uint32_t node = plan_apply(&call->plan->plan, operation, api_plan_node(call->nodes[0]),
				   api_plan_node(call->nodes[1]), api_plan_node(call->nodes[2]));
	if (node == PLAN_NOTHING)
		return diag_fail(diag, EINVAL,
				 "xheap_plan_apply: '%s' does not take these operands, or the plan is too large",
				 call->name);
	call->result = node;
	return 0;
}

API uint32_t xheap_plan_apply(xheap_plan *plan, const char *operation, uint32_t a, uint32_t b, uint32_t c)
{
	return plan_call(&(struct plan_call){.plan = plan, .name = operation, .nodes = {a, b, c}}, apply_work);
}

static int lookup_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	struct xheap_plan *plan = call->plan;
	if (call->count && !call->values)
		return diag_fail(diag, EINVAL, "xheap_plan_lookup: values has a count and no numbers");
	struct plan_lookup *lookup = memory_zeroed(1, sizeof(*lookup));
	memory_grow(plan->lookups, plan->lookup_count, plan->lookup_capacity);
	plan->lookups[plan->lookup_count++] = lookup;
	uint64_t *values = memory_resize(NULL, call->count, sizeof(*values));
	*lookup = (struct plan_lookup){.type = PLAN_NUMBER, .values = values, .count = call->count};
	if (call->count)
		memcpy(values, call->values, call->count * sizeof(*values));
	return done(call, plan_lookup(&plan->plan, api_plan_node(call->nodes[0]), lookup), diag, "xheap_plan_lookup",
		    "the node is no number, or the plan is too large");
}

API uint32_t xheap_plan_lookup(xheap_plan *plan, uint32_t number, const uint64_t *values, size_t count)
{
	return plan_call(&(struct plan_call){.plan = plan, .nodes = {number}, .values = values, .count = count},
			 lookup_work);
}

static int filter_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	struct plan *plan = &call->plan->plan;
	uint32_t node = api_plan_node(call->nodes[0]);
	if (node >= plan->node_count || plan->nodes[node].type != PLAN_TRUTH)
		return diag_fail(diag, EINVAL, "xheap_plan_filter: the node is no truth");
	node = plan->filter == PLAN_NOTHING ? node : plan_apply(plan, PLAN_AND, plan->filter, node, PLAN_NOTHING);
	plan->filter = node;
	return done(call, node, diag, "xheap_plan_filter", "the plan is too large");
}

API void xheap_plan_filter(xheap_plan *plan, uint32_t condition)
{
	plan_call(&(struct plan_call){.plan = plan, .nodes = {condition}}, filter_work);
}

/* ---- columns of the result ---- */

const struct column *api_plan_column(const struct xheap_plan *plan, uint32_t handle)
{
	uint32_t node = api_plan_node(handle);
	if (node >= plan->plan.node_count || plan->plan.nodes[node].operation != PLAN_COLUMN)
		return NULL;
	return column_find(plan->plan.source, (enum column_id)plan->plan.nodes[node].number);
}

/* The name under which the caller asked for a column. */
static void own_name(char name[NAME_BYTES], const struct xheap_plan *plan, uint32_t handle)
{
	const struct column *column = api_plan_column(plan, handle);
	if (!column)
		snprintf(name, NAME_BYTES, "column_%u", (unsigned)plan->shown_count + 1);
	else if (handle & NODE_AS_ID)
		snprintf(name, NAME_BYTES, "%s_id", column->name);
	else
		snprintf(name, NAME_BYTES, "%s", column->name);
	for (size_t i = 0; column && i < STACK_SHOWS; i++)
		if (handle & stack_shows[i].flag)
			snprintf(name, NAME_BYTES, "%.*s%s", (int)(strlen(column->name) - STACK_ID_BYTES), column->name,
				 stack_shows[i].end);
}

static int show(struct plan_call *call, struct api_plan_shown shown, const char *kind, struct diag *diag)
{
	struct xheap_plan *plan = call->plan;
	char own[NAME_BYTES], name[2 * NAME_BYTES];
	own_name(own, plan, shown.handle);
	if (call->name)
		snprintf(name, sizeof(name), "%s", call->name);
	else if (kind)
		snprintf(name, sizeof(name), "%s%s%s", kind, shown.handle == XHEAP_NONE ? "" : "_",
			 shown.handle == XHEAP_NONE ? "" : own);
	else
		snprintf(name, sizeof(name), "%s", own);
	for (uint32_t i = 0; i < plan->shown_count; i++)
		if (!strcmp(plan->shown[i].name, name))
			return diag_fail(diag, EINVAL, "two columns of the result are called '%s'", name);
	shown.name = action_copy(name);
	call->result = plan->shown_count;
	plan->shown[plan->shown_count++] = shown;
	return 0;
}

static int no_room(struct diag *diag, const char *function)
{
	return diag_fail(diag, EINVAL, "%s: there is no such node, or the result has more than %d columns", function,
			 PLAN_OUTPUTS_MAX);
}

static bool has_room(const struct xheap_plan *plan)
{
	return plan->shown_count < PLAN_OUTPUTS_MAX;
}

static int output_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	struct plan *plan = &call->plan->plan;
	uint32_t node = api_plan_node(call->nodes[0]), place = 0;
	if (plan_is_grouped(plan))
		return diag_fail(diag, EINVAL, "xheap_plan_output: a plan with keys or aggregates has no outputs");
	while (place < plan->output_count && plan->outputs[place] != node)
		place++;
	if (!has_room(call->plan) || (place == plan->output_count && !plan_output(plan, node)))
		return no_room(diag, "xheap_plan_output");
	return show(call, (struct api_plan_shown){.part = SHOWN_OUTPUT, .place = place, .handle = call->nodes[0]}, NULL,
		    diag);
}

API uint32_t xheap_plan_output(xheap_plan *plan, uint32_t node, const char *name)
{
	return plan_call(&(struct plan_call){.plan = plan, .nodes = {node}, .name = name}, output_work);
}

static int key_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	struct plan *plan = &call->plan->plan;
	if (plan->output_count)
		return diag_fail(diag, EINVAL, "xheap_plan_key: a plan with outputs has no keys");
	if (call->nodes[0] != XHEAP_NONE && call->nodes[0] & NODE_AS_CALLER)
		return diag_fail(diag, EINVAL,
				 "xheap_plan_key: a caller is no key, since several stacks have one: "
				 "the key is stack_id");
	if (!has_room(call->plan) || !plan_key(plan, api_plan_node(call->nodes[0])))
		return no_room(diag, "xheap_plan_key");
	return show(call,
		    (struct api_plan_shown){.part = SHOWN_KEY, .place = plan->key_count - 1, .handle = call->nodes[0]},
		    NULL, diag);
}

API uint32_t xheap_plan_key(xheap_plan *plan, uint32_t node, const char *name)
{
	return plan_call(&(struct plan_call){.plan = plan, .nodes = {node}, .name = name}, key_work);
}

struct aggregate_call {
	struct plan_call call;
	const char *kind;
};

static int aggregate_work(void *context, struct diag *diag)
{
	struct aggregate_call *aggregate = context;
	struct plan_call *call = &aggregate->call;
	struct plan *plan = &call->plan->plan;
	unsigned kind = 0;
	while (kind < AGGREGATE_COUNT && (!aggregate->kind || strcmp(aggregate_words[kind], aggregate->kind)))
		kind++;
	if (kind == AGGREGATE_COUNT)
		return diag_fail(diag, EINVAL, "xheap_plan_aggregate: there is no kind '%s'",
				 aggregate->kind ? aggregate->kind : "(NULL)");
	if (plan->output_count)
		return diag_fail(diag, EINVAL, "xheap_plan_aggregate: a plan with outputs has no aggregates");
	if (!has_room(call->plan) ||
	    !plan_aggregate(plan, (enum plan_aggregate_kind)kind, api_plan_node(call->nodes[0])))
		return no_room(diag, "xheap_plan_aggregate");
	return show(call,
		    (struct api_plan_shown){
			    .part = SHOWN_AGGREGATE, .place = plan->aggregate_count - 1, .handle = call->nodes[0]},
		    aggregate->kind, diag);
}

API uint32_t xheap_plan_aggregate(xheap_plan *plan, const char *kind, uint32_t node, const char *name)
{
	struct aggregate_call aggregate = {{.plan = plan, .nodes = {node}, .name = name}, kind};
	return plan_call(&aggregate.call, aggregate_work);
}

static int order_work(void *context, struct diag *diag)
{
	struct plan_call *call = context;
	struct plan *plan = &call->plan->plan;
	if (call->nodes[0] >= call->plan->shown_count || plan->order_count >= PLAN_OUTPUTS_MAX)
		return diag_fail(diag, EINVAL, "xheap_plan_order: the result has no column %u", call->nodes[0]);
	plan->orders[plan->order_count++] = (struct plan_order){call->nodes[0], call->is_set};
	return 0;
}

API void xheap_plan_order(xheap_plan *plan, uint32_t output, uint32_t is_descending)
{
	plan_call(&(struct plan_call){.plan = plan, .nodes = {output}, .is_set = is_descending}, order_work);
}

API void xheap_plan_limit(xheap_plan *plan, uint64_t skip, uint64_t limit)
{
	if (!plan)
		return;
	plan->plan.skip = skip;
	plan->plan.limit = limit;
}

/* ---- as it can be run ---- */

uint32_t api_plan_place(const struct xheap_plan *plan, const struct api_plan_shown *shown)
{
	return shown->place + (shown->part == SHOWN_AGGREGATE ? plan->plan.key_count : 0);
}

int api_plan_take(struct plan *to, const struct xheap_plan *plan, struct diag *diag)
{
	if (plan->reason.text[0])
		return diag_fail(diag, EINVAL, "%s", plan->reason.text);
	if (!plan->shown_count)
		return diag_fail(diag, EINVAL, "xheap_plan: it has neither outputs nor keys nor aggregates");
	*to = plan->plan;
	to->node_capacity = to->node_count;
	to->nodes = memory_resize(NULL, to->node_count, sizeof(*to->nodes));
	if (to->node_count)
		memcpy(to->nodes, plan->plan.nodes, to->node_count * sizeof(*to->nodes));
	for (uint32_t i = 0; i < to->order_count; i++)
		to->orders[i].output = api_plan_place(plan, &plan->shown[to->orders[i].output]);
	return 0;
}

/* ---- its life ---- */

static void plan_release(void *context)
{
	struct xheap_plan *plan = context;
	if (__atomic_sub_fetch(&plan->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (uint32_t i = 0; i < plan->shown_count; i++)
		free(plan->shown[i].name);
	for (size_t i = 0; i < plan->lookup_count; i++) {
		free((void *)plan->lookups[i]->values);
		free(plan->lookups[i]);
	}
	free(plan->lookups);
	plan_fini(&plan->plan);
	free(plan);
}

void api_plan_hold(struct xheap_plan *plan)
{
	__atomic_fetch_add(&plan->references, 1, __ATOMIC_RELAXED);
}

struct plan_making {
	uint32_t table;
	struct xheap_plan *plan;
};

static int new_work(void *context, struct diag *diag)
{
	struct plan_making *making = context;
	if (making->table > XHEAP_TABLE_EVENT)
		return diag_fail(diag, EINVAL, "xheap_plan_new: a plan is over allocations or events, not table %u",
				 making->table);
	making->plan = memory_zeroed(1, sizeof(*making->plan));
	making->plan->references = 1;
	plan_init(&making->plan->plan, making->table == XHEAP_TABLE_EVENT ? COLUMNS_OF_EVENTS : COLUMNS_OF_ALLOCATIONS);
	return 0;
}

API int xheap_plan_new(uint32_t table, xheap_plan **plan, xheap_error *error)
{
	struct plan_making making = {.table = table};
	int status = api_run(NULL, error, new_work, &making);
	*plan = status == XHEAP_OK ? making.plan : NULL;
	return status;
}

API void xheap_plan_free(xheap_plan *plan)
{
	if (plan)
		api_end(plan_release, plan);
}
