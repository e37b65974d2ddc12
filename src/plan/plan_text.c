/* SPDX-License-Identifier: MIT */
#include "plan/plan_text.h"

#include <inttypes.h>

enum { DEPTH_MAX = 12 };

#define X(id, word, operands) word,
static const char *const words[] = {PLAN_OPERATORS(X)};
#undef X
static const char *const aggregate_words[] = {"count", "sum", "least", "greatest", "average"};

static void put_node(const struct plan *plan, uint32_t number, unsigned depth, struct sink *out);

static void put_constant(const struct plan_node *node, struct sink *out)
{
	if (node->is_absent)
		sink_text(out, "nothing");
	else if (node->type == PLAN_TRUTH)
		sink_text(out, node->number ? "true" : "false");
	else if (node->type == PLAN_TIME)
		sink_format(out, "%" PRId64, (int64_t)node->number);
	else
		sink_format(out, "%" PRIu64, node->number);
}

/* name(a, b, c) */
static void put_call(const struct plan *plan, const struct plan_node *node, unsigned depth, struct sink *out)
{
	unsigned count = plan_operand_count((enum plan_operator)node->operation);
	sink_format(out, "%s(", node->operation == PLAN_CHOOSE ? "choose" : words[node->operation]);
	for (unsigned i = 0; i < count; i++) {
		sink_text(out, i ? ", " : "");
		put_node(plan, node->operands[i], depth + 1, out);
	}
	sink_text(out, ")");
}

static void put_node(const struct plan *plan, uint32_t number, unsigned depth, struct sink *out)
{
	const struct plan_node *node = &plan->nodes[number];
	unsigned count = plan_operand_count((enum plan_operator)node->operation);
	bool is_binary = count == 2 && node->operation != PLAN_IF_ABSENT;
	if (depth > DEPTH_MAX) {
		sink_text(out, "...");
	} else if (node->operation == PLAN_COLUMN) {
		sink_text(out, column_find(plan->source, (enum column_id)node->number)->name);
	} else if (node->operation == PLAN_CONSTANT) {
		put_constant(node, out);
	} else if (is_binary) {
		sink_text(out, depth ? "(" : "");
		put_node(plan, node->operands[0], depth + 1, out);
		sink_format(out, " %s ", words[node->operation]);
		put_node(plan, node->operands[1], depth + 1, out);
		sink_text(out, depth ? ")" : "");
	} else {
		put_call(plan, node, depth, out);
	}
}

static void put_aggregate(const struct plan *plan, const struct plan_aggregate *aggregate, struct sink *out)
{
	sink_text(out, aggregate_words[aggregate->kind]);
	if (aggregate->node != PLAN_NOTHING) {
		sink_text(out, " of ");
		put_node(plan, aggregate->node, 0, out);
	}
}

static void put_output(const struct plan *plan, uint32_t output, struct sink *out)
{
	if (!plan_is_grouped(plan))
		put_node(plan, plan->outputs[output], 0, out);
	else if (output < plan->key_count)
		put_node(plan, plan->keys[output], 0, out);
	else if (output < plan->key_count + plan->aggregate_count)
		put_aggregate(plan, &plan->aggregates[output - plan->key_count], out);
	else
		sink_text(out, "what is computed of each group");
}

/* A line of outputs; nothing if there are none. */
static void put_line(const struct plan *plan, const char *indent, const char *title, uint32_t first, uint32_t count,
		     struct sink *out)
{
	if (!count)
		return;
	sink_format(out, "%s%-9s", indent, title);
	for (uint32_t i = 0; i < count; i++) {
		sink_text(out, i ? "; " : "");
		put_output(plan, first + i, out);
	}
	sink_text(out, "\n");
}

static void put_orders(const struct plan *plan, const char *indent, struct sink *out)
{
	for (uint32_t i = 0; i < plan->order_count; i++) {
		sink_text(out, i ? "; " : indent);
		sink_text(out, i ? "" : "order    ");
		put_output(plan, plan->orders[i].output, out);
		sink_text(out, plan->orders[i].is_descending ? ", greatest first" : "");
	}
	sink_text(out, plan->order_count ? "\n" : "");
}

void plan_describe(const struct plan *plan, const char *indent, struct sink *out)
{
	sink_format(out, "%sfrom     %s\n", indent, plan->source == COLUMNS_OF_EVENTS ? "events" : "allocations");
	if (plan->filter != PLAN_NOTHING) {
		sink_format(out, "%swhere    ", indent);
		put_node(plan, plan->filter, 0, out);
		sink_text(out, "\n");
	}
	put_line(plan, indent, "show", 0, plan_is_grouped(plan) ? 0 : plan->output_count, out);
	put_line(plan, indent, "group by", 0, plan->key_count, out);
	if (plan->regrouping)
		sink_format(out, "%sjoin     groups whose ids stand for the same\n", indent);
	put_line(plan, indent, "add up", plan->key_count, plan->aggregate_count, out);
	put_orders(plan, indent, out);
	if (plan->skip)
		sink_format(out, "%sskip     %" PRIu64 "\n", indent, plan->skip);
	if (plan->limit != UINT64_MAX)
		sink_format(out, "%stake     %" PRIu64 "\n", indent, plan->limit);
}
