/* SPDX-License-Identifier: MIT */
/* What is forgotten of an interpreter that is unloaded: another one may come to lie in its place, with code objects at
   the same addresses that have the same numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "recorder/python.h"
#include "recorder/python_ids.h"

enum { ID = 77 };

static struct recorder *recorder_make(void)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	assert_non_null(recorder);
	recorder->python_count = 1;
	return recorder;
}

static void test_ids(void **state)
{
	struct recorder *recorder = recorder_make();
	(void)state;
	for (uint32_t i = 0; i < PYTHON_IDS; i += 3)
		recorder->python_id[i] = (struct python_id){.key = 2 * i + 1, .value = (uint64_t)i << 32 | ID};
	python_ids_forget(recorder);
	for (uint32_t i = 0; i < PYTHON_IDS; i += 3)
		assert_int_equal(recorder->python_id[i].value, (uint64_t)i << 32 | ID);
	recorder->python_ids_are_stale = 1;
	python_ids_forget(recorder);
	assert_int_equal(recorder->python_ids_are_stale, 0);
	for (uint32_t i = 0; i < PYTHON_IDS; i++) {
		assert_int_equal(recorder->python_id[i].key, 0);
		assert_int_equal(recorder->python_id[i].value, 0);
	}
	free(recorder);
}

/* The frames of a thread's last stack, which pages of theirs may be read, and that its frames are left alone. */
static void test_frames(void **state)
{
	struct recorder *recorder = recorder_make();
	struct python_thread python = {.walks = 5, .failures = 6};
	struct thread thread = {.recorder = recorder, .python = &python, .generation = 1};
	(void)state;
	recorder->generation = 1;
	python_begin(&thread);
	assert_int_equal(thread.stack_mode, STACKS_HAVE_PYTHON);
	assert_int_equal(python.walks, 5);
	assert_int_equal(python.failures, 6);
	recorder->generation = 2;
	python_begin(&thread);
	assert_int_equal(python.walks, 0);
	assert_int_equal(python.failures, 0);
	/* A thread that had no event with Python frames yet. */
	thread.python = NULL;
	python_begin(&thread);
	free(recorder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids), cmocka_unit_test(test_frames)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
