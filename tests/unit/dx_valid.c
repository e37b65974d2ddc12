/* SPDX-License-Identifier: MIT */
/*
 * The walkers of what dx passes between its parts: values, sequences, lists, arenas, keys, runs in a file. They hold
 * after each step, and fail when one field is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dx/core/query_memory.c"
#include "dx/core/sequence.c"
#include "dx/run/keys.h"
#include "dx/run/operators.h"
#include "dx/run/spill.h"
#include "noticed.h"

static struct dx_query query;

static int begin(void **state)
{
	(void)state;
	dx_query_init(&query, NULL, 1 << 24, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	dx_query_fini(&query);
	assert_int_equal(query.budget.used_bytes, 0);
	return 0;
}

static void values_hold(void **state)
{
	static const char *const names[] = {"a", "b"};
	const struct dx_value values[] = {dx_number(1), dx_text("two")};
	struct dx_record record = {2, names, values};
	struct dx_node node = {.kind = DX_NODE_LAMBDA, .count = 1};
	struct dx_closure closure = {&node, NULL};
	struct dx_value number = dx_signed(-1), text = dx_text("text"), object = dx_object(&dx_record_class, &record);
	struct dx_value position = dx_position(100, 2), lambda = {.kind = DX_LAMBDA, .closure = &closure};
	(void)state;
	assert_noticed(number.kind, DX_KIND_COUNT, dx_value_is_valid(&number));
	assert_noticed(number.kind, DX_REAL, dx_value_is_valid(&number));
	assert_noticed(position.kind, DX_BOOL, dx_value_is_valid(&position));
	assert_noticed(text.text, NULL, dx_value_is_valid(&text));
	assert_noticed(text.is_address, true, dx_value_is_valid(&text));
	assert_noticed(object.class, NULL, dx_value_is_valid(&object));
	assert_noticed(object.data, NULL, dx_value_is_valid(&object));
	assert_noticed(record.values, NULL, dx_value_is_valid(&object));
	assert_noticed(record.names, NULL, dx_value_is_valid(&object));
	assert_noticed(lambda.closure, NULL, dx_value_is_valid(&lambda));
	assert_noticed(closure.node, NULL, dx_value_is_valid(&lambda));
	assert_noticed(node.kind, DX_NODE_NAME, dx_value_is_valid(&lambda));
}

static void sequences_hold(void **state)
{
	struct dx_list *list = dx_list_new(&query, query.arena);
	struct dx_operator where = dx_where_operator;
	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		dx_list_add(list, &(struct dx_element){dx_text("element"), dx_number(i)});
		assert_true(dx_list_is_valid(list));
	}
	assert_noticed(list->references, 0, dx_list_is_valid(list));
	assert_noticed(list->count, list->capacity + 1, dx_list_is_valid(list));
	assert_noticed(list->elements[99].value.text, NULL, dx_list_is_valid(list));
	assert_noticed(list->arena.next, list->arena.end + 1, dx_list_is_valid(list));
	struct dx_value part = dx_list_value(&query, list, 10, 20);
	struct dx_sequence *whole = dx_sequence_new(&query, &where, part.sequence, 0);
	struct dx_sequence *of_list = (struct dx_sequence *)part.sequence;
	assert_noticed(whole->operation, NULL, dx_sequence_is_valid(whole));
	assert_noticed(where.next, NULL, dx_sequence_is_valid(whole));
	assert_noticed(where.name, NULL, dx_sequence_is_valid(whole));
	assert_noticed(whole->argument_count, DX_ARGUMENTS_MAX + 1, dx_sequence_is_valid(whole));
	whole->argument_count = 1;
	assert_noticed(whole->arguments[0].kind, DX_LAMBDA, dx_sequence_is_valid(whole));
	assert_noticed(of_list->argument_count, 1, dx_sequence_is_valid(whole));
	assert_noticed(of_list->arguments[LIST_FIRST].number, 31, dx_sequence_is_valid(whole));
	assert_noticed(of_list->arguments[LIST_END].number, 101, dx_sequence_is_valid(whole));
	assert_noticed(of_list->arguments[LIST_ITSELF].data, NULL, dx_sequence_is_valid(whole));
}

static void nothing(void *context)
{
	(void)context;
}

static void arenas_hold(void **state)
{
	struct dx_arena *arena = query.arena;
	(void)state;
	assert_true(dx_arena_is_valid(arena));
	dx_alloc(arena, 100);
	struct dx_mark mark = dx_mark(arena);
	for (size_t i = 1; i < 3 * CHUNK_BYTES; i += i) {
		dx_alloc(arena, i);
		dx_on_release(arena, nothing, NULL);
		assert_true(dx_arena_is_valid(arena));
	}
	dx_release(arena, mark);
	assert_true(dx_arena_is_valid(arena));
	assert_non_null(arena->spare);
	dx_on_release(arena, nothing, NULL);
	assert_noticed(arena->next, arena->next + 1, dx_arena_is_valid(arena));
	assert_noticed(arena->next, arena->chunks->data - ALIGNMENT, dx_arena_is_valid(arena));
	assert_noticed(arena->end, arena->end - 1, dx_arena_is_valid(arena));
	assert_noticed(arena->chunks, NULL, dx_arena_is_valid(arena));
	assert_noticed(arena->spare->size_bytes, CHUNK_BYTES + 1, dx_arena_is_valid(arena));
	assert_noticed(arena->cleanups->end, NULL, dx_arena_is_valid(arena));
	assert_noticed(arena->chunk_bytes, arena->chunk_bytes + 1, dx_arena_is_valid(arena));
	assert_noticed(query.budget.used_bytes, CHUNK_BYTES, dx_arena_is_valid(arena));
}

static void keys_hold(void **state)
{
	struct dx_keys keys;
	const struct dx_value lambda = {.kind = DX_ABSENT};
	(void)state;
	dx_keys_init(&keys, &query, query.arena, NULL);
	assert_true(dx_keys_are_valid(&keys));
	for (uint64_t i = 0; i < 200; i++) {
		const struct dx_value key = dx_number(i * i % 101);
		dx_keys_add(&keys, &key);
		assert_true(dx_keys_are_valid(&keys));
	}
	uint32_t at = 0;
	while (!keys.slots[at])
		at++;
	assert_noticed(keys.slots[at], 0, dx_keys_are_valid(&keys));
	assert_noticed(keys.slots[at], keys.count + 1, dx_keys_are_valid(&keys));
	/* Not any other number: its hash, which no two runs have in common, may lead to the same slot. */
	assert_noticed(keys.keys[3].number, keys.keys[4].number, dx_keys_are_valid(&keys));
	assert_noticed(keys.count, keys.count - 1, dx_keys_are_valid(&keys));
	assert_noticed(keys.capacity, keys.count - 1, dx_keys_are_valid(&keys));
	assert_noticed(keys.compare, &lambda, dx_keys_are_valid(&keys));
	dx_keys_fini(&keys);
}

static void spills_hold(void **state)
{
	struct dx_spill spill = {.file = {RUN_FILE_NONE}};
	const struct dx_value text = dx_text("text");
	(void)state;
	assert_true(dx_spill_is_valid(&spill));
	for (uint32_t run = 0; run < 3; run++) {
		dx_spill_write(&spill, &text);
		assert_true(dx_spill_is_valid(&spill));
		assert_true(dx_spill_end_run(&spill));
		assert_true(dx_spill_is_valid(&spill));
	}
	assert_noticed(spill.runs[1].offset, 1, dx_spill_is_valid(&spill));
	assert_noticed(spill.file.end, spill.file.end - 1, dx_spill_is_valid(&spill));
	assert_noticed(spill.run_count, spill.run_capacity + 1, dx_spill_is_valid(&spill));
	assert_noticed(spill.file.fd, -1, dx_spill_is_valid(&spill));
	dx_spill_fini(&spill);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {TEST(values_hold), TEST(sequences_hold), TEST(arenas_hold), TEST(keys_hold),
					   TEST(spills_hold)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
