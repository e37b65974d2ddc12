/* SPDX-License-Identifier: MIT */
/* The walkers of plans, of collected records and of groups: they hold, and fail when one field is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "noticed.h"
#include "plan/plan_groups.h"
#include "plan/records.h"

enum { RECORDS = 500, GROUPS = 300, MANY_KEYS = 1 << 19 };

static void plans_hold(void **state)
{
	static const uint64_t values[] = {1, 0, 1};
	const struct plan_lookup lookup = {PLAN_TRUTH, values, NULL, 3};
	struct plan plan;
	(void)state;
	plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
	assert_true(plan_is_valid(&plan));
	uint32_t size = plan_column(&plan, COLUMN_SIZE), hundred = plan_number(&plan, 100);
	uint32_t is_greater = plan_apply(&plan, PLAN_GREATER, size, hundred, PLAN_NOTHING);
	uint32_t looked_up = plan_lookup(&plan, plan_column(&plan, COLUMN_STACK), &lookup);
	plan.filter = plan_apply(&plan, PLAN_AND, is_greater, looked_up, PLAN_NOTHING);
	assert_true(plan_key(&plan, size));
	assert_true(plan_aggregate(&plan, PLAN_SUM, size) && plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING));
	assert_true(plan_order(&plan, 2, true));
	assert_true(plan_is_valid(&plan));
	struct plan_node *nodes = plan.nodes;
	assert_noticed(plan.source, COLUMN_SOURCES, plan_is_valid(&plan));
	assert_noticed(plan.filter, size, plan_is_valid(&plan));
	assert_noticed(plan.filter, plan.node_count, plan_is_valid(&plan));
	assert_noticed(plan.node_count, is_greater, plan_is_valid(&plan));
	assert_noticed(plan.node_capacity, 1, plan_is_valid(&plan));
	assert_noticed(plan.keys[0], PLAN_NOTHING, plan_is_valid(&plan));
	assert_noticed(plan.key_count, PLAN_OUTPUTS_MAX, plan_is_valid(&plan));
	assert_noticed(plan.aggregates[0].node, is_greater, plan_is_valid(&plan));
	assert_noticed(plan.aggregates[1].kind, PLAN_LEAST, plan_is_valid(&plan));
	assert_noticed(plan.orders[0].output, 3, plan_is_valid(&plan));
	assert_noticed(nodes[size].number, COLUMN_ACTION, plan_is_valid(&plan));
	assert_noticed(nodes[hundred].type, PLAN_TRUTH, plan_is_valid(&plan));
	assert_noticed(nodes[hundred].operands[0], size, plan_is_valid(&plan));
	assert_noticed(nodes[is_greater].operands[1], is_greater, plan_is_valid(&plan));
	assert_noticed(nodes[is_greater].type, PLAN_NUMBER, plan_is_valid(&plan));
	assert_noticed(nodes[is_greater].operation, PLAN_AND, plan_is_valid(&plan));
	assert_noticed(nodes[is_greater].operation, PLAN_OPERATOR_COUNT, plan_is_valid(&plan));
	assert_noticed(nodes[looked_up].lookup, NULL, plan_is_valid(&plan));
	plan_fini(&plan);
}

/* Records of one value, its absent bits and a number. Most of them go to the file. */
static void records_hold(void **state)
{
	const struct record_order order = {.width = 1, .stride = 3, .count = 1, .keys = {{.type = PLAN_NUMBER}}};
	struct run_file spill = {.directory = ".", RUN_FILE_NONE};
	struct record_order other = order;
	struct records records;
	(void)state;
	records_begin(&records, &order, &spill, UINT64_MAX, 4096);
	for (uint64_t i = 0; i < RECORDS; i++) {
		uint64_t *record = records_add(&records);
		record[0] = i * 7919 % 50;
		record[1] = 0;
		record[2] = i;
		assert_true(records_are_valid(&records));
	}
	assert_false(records_are_sorted(&records));
	records_sort(&records);
	assert_true(records_are_sorted(&records) && records_are_valid(&records));
	assert_true(records.run_count > 2 && records.count > 2);
	assert_noticed(records.count, records.capacity + 1, records_are_valid(&records));
	assert_noticed(records.room, 1, records_are_valid(&records));
	assert_noticed(records.has_threshold, true, records_are_valid(&records));
	assert_noticed(records.runs[1].offset, 0, records_are_valid(&records));
	assert_noticed(records.runs[0].bytes, 0, records_are_valid(&records));
	assert_noticed(records.run_count, records.run_capacity + 1, records_are_valid(&records));
	assert_noticed(spill.end, spill.end - 1, records_are_valid(&records));
	other.keys[0].output = 1;
	assert_noticed(records.order, &other, records_are_valid(&records));
	assert_noticed(records.items[0], UINT64_MAX, records_are_sorted(&records));
	assert_noticed(records.most, 1, records_are_sorted(&records));
	records_end(&records);
	run_file_fini(&spill);
}

/* Add a batch of rows with the keys. */
static void batch_add(struct plan_groups *groups, uint64_t first, uint64_t step)
{
	uint64_t keys[PLAN_BATCH];
	struct plan_vector vector = {.values = keys};
	const struct plan_evaluation evaluation = {.plan = groups->plan, .vectors = &vector};
	const uint64_t passes[PLAN_WORDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct row_places places = {.first = first};
	for (uint64_t i = 0; i < PLAN_BATCH; i++)
		keys[i] = first + i * step;
	plan_groups_add(groups, &evaluation, passes, &places);
	assert_true(plan_groups_are_valid(groups));
}

static void groups_hold(void **state)
{
	struct run_file file = {.directory = ".", RUN_FILE_NONE};
	struct group_spill spill;
	struct plan plan;
	struct plan_groups groups;
	(void)state;
	plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
	plan_key(&plan, plan_column(&plan, COLUMN_SIZE));
	plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING);
	group_spill_begin(&spill, &plan, &file, NULL);
	plan_groups_begin(&groups, &plan, &spill, 1 << 28);
	assert_true(plan_groups_are_valid(&groups));
	for (uint64_t i = 0; i < 8; i++)
		batch_add(&groups, i * GROUPS, 1 + i * MANY_KEYS);
	assert_true(groups.count > GROUPS && groups.dense_count > GROUPS);
	assert_noticed(groups.items[0], 12345, plan_groups_are_valid(&groups));
	assert_noticed(groups.items[groups.stride], groups.items[0], plan_groups_are_valid(&groups));
	assert_noticed(groups.dense[1], 1, plan_groups_are_valid(&groups));
	assert_noticed(groups.dense[1], groups.count + 1, plan_groups_are_valid(&groups));
	assert_noticed(groups.count, groups.capacity + 1, plan_groups_are_valid(&groups));
	assert_noticed(groups.stride, 2, plan_groups_are_valid(&groups));
	plan_groups_end(&groups);
	plan_fini(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(plans_hold), cmocka_unit_test(records_hold),
					   cmocka_unit_test(groups_hold)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
