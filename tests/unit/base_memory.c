/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/threads.h"
#include "base/worker_pool.h"
#include "query/scan.h"

static void take_too_much(void *context)
{
	int *steps = context;
	++*steps;
	memory_resize(NULL, SIZE_MAX / 16, 8);
	++*steps;
}

static void take_little(void *context)
{
	struct arena arena = {0};
	*(int *)context += *(char *)arena_alloc(&arena, 1, 100) + 1;
	arena_fini(&arena);
}

static void what_has_no_memory_is_given_up(void **state)
{
	(void)state;
	int steps = 0;
	assert_false(memory_try(take_too_much, &steps));
	assert_int_equal(steps, 1);
	assert_true(memory_try(take_little, &steps));
	assert_int_equal(steps, 2);
}

static void try_within(void *context)
{
	int *steps = context;
	if (!memory_try(take_too_much, steps))
		*steps += 10;
	take_too_much(steps);
}

static void the_innermost_attempt_is_given_up(void **state)
{
	(void)state;
	int steps = 0;
	assert_false(memory_try(try_within, &steps));
	assert_int_equal(steps, 12);
}

static void end_never(void *context)
{
	(void)context;
	fail();
}

static void guard_work(void *context)
{
	memory_guard(context, end_never, NULL);
}

static void unguard_another(void *context)
{
	struct memory_guard *gone = context, own;
	memory_guard(&own, end_never, NULL);
	memory_unguard(gone);
	memory_unguard(&own);
}

/* It belongs to a handle, which another thread may free. */
static void a_guard_ends_with_the_outermost_attempt(void **state)
{
	(void)state;
	int steps = 0;
	struct memory_guard guard, other;
	assert_true(memory_try(guard_work, &guard));
	memset(&guard, 0xff, sizeof(guard));
	assert_true(memory_try(unguard_another, &other));
	assert_false(memory_try(take_too_much, &steps));
}

static void pool_work(void *context)
{
	int steps = 0;
	*(struct worker_pool **)context = worker_pool_new(100);
	take_too_much(&steps);
}

/* Its threads have ended; the owner frees it when it frees the rest. */
static void a_pool_outlives_work_that_is_given_up(void **state)
{
	(void)state;
	struct worker_pool *pool;
	assert_false(memory_try(pool_work, &pool));
	assert_int_equal(worker_pool_helpers(pool), 0);
	worker_pool_free(pool);
}

struct share {
	int steps;
	bool is_greedy;
};

static void share_work(void *context)
{
	struct share *share = context;
	(share->is_greedy ? take_too_much : take_little)(&share->steps);
}

static void work_in_threads(void *context)
{
	heap_scan_threads(share_work, context, sizeof(struct share), 3);
}

/* The contexts are on this stack, so all of them have to have ended. */
static void a_thread_without_memory_gives_up_the_work_of_all(void **state)
{
	(void)state;
	for (int greedy = 0; greedy < 3; greedy++) {
		struct share shares[3] = {{0, greedy == 0}, {0, greedy == 1}, {0, greedy == 2}};
		assert_false(memory_try(work_in_threads, shares));
		assert_int_equal(shares[0].steps + shares[1].steps + shares[2].steps, 3);
	}
	struct share shares[3] = {{0, false}};
	assert_true(memory_try(work_in_threads, shares));
}

static void *signals_of_thread(void *context)
{
	sigset_t *blocked = context;
	pthread_sigmask(SIG_SETMASK, NULL, blocked);
	return NULL;
}

static void threads_take_no_signals(void **state)
{
	(void)state;
	sigset_t blocked, own;
	pthread_t thread;
	assert_true(thread_begin(&thread, signals_of_thread, &blocked));
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &own);
	assert_true(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGCHLD));
	assert_false(sigismember(&own, SIGTERM));
}

static void a_table_is_zeroed_of_any_size(void **state)
{
	(void)state;
	const size_t counts[] = {0, 1, 1000, (2 << 20) / 8, (2 << 20) / 8 + 1, 1000001, 3 << 20};
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		uint64_t *table = memory_table(counts[i], sizeof(*table)), sum = 0;
		for (size_t k = 0; k < counts[i]; k++)
			sum |= table[k];
		assert_int_equal(sum, 0);
		/* What is given back is not zeroed any more. */
		memset(table, 0xff, counts[i] * sizeof(*table));
		free(table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_memory_is_given_up),
		cmocka_unit_test(the_innermost_attempt_is_given_up),
		cmocka_unit_test(a_guard_ends_with_the_outermost_attempt),
		cmocka_unit_test(a_pool_outlives_work_that_is_given_up),
		cmocka_unit_test(a_thread_without_memory_gives_up_the_work_of_all),
		cmocka_unit_test(threads_take_no_signals),
		cmocka_unit_test(a_table_is_zeroed_of_any_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
