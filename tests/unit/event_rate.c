/* SPDX-License-Identifier: MIT */
/* Rates: of the last seconds where what is counted is looked at often, of the time between two looks where it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "session/pace.h"

enum { MS = 3000, SECOND = 1000 * MS, BORN = 77 }; /* ticks */

static uint64_t rate(const struct pace *pace, uint64_t events, uint64_t seconds)
{
	return pace_rate(pace, events, BORN + seconds * SECOND, MS);
}

static void the_first_seconds_count_from_the_beginning(void **state)
{
	struct pace pace;
	(void)state;
	pace_begin(&pace, BORN);
	assert_int_equal(pace_rate(&pace, 5, BORN, MS), 0);
	assert_int_equal(pace_rate(&pace, 5, BORN - 1, MS), 0);
	assert_int_equal(pace_rate(&pace, 10, BORN + SECOND / 4, MS), 40);
	assert_int_equal(rate(&pace, 300, 3), 100);
}

static void what_is_looked_at_often_is_of_the_last_seconds(void **state)
{
	struct pace pace;
	uint64_t events = 0;
	(void)state;
	pace_begin(&pace, BORN);
	/* 1000 a second, then 10, then none. */
	for (uint64_t second = 1; second <= 30; second++) {
		events += second <= 10 ? 1000 : second <= 20 ? 10 : 0;
		pace_note(&pace, events, BORN + second * SECOND, MS);
		uint64_t wanted = second <= 10 ? 1000 : second <= 20 ? 10 : 0;
		if (second % 10 > 3 || second <= 10)
			assert_int_equal(rate(&pace, events, second), wanted);
	}
}

static void what_is_looked_at_seldom_is_of_the_time_between(void **state)
{
	struct pace pace;
	(void)state;
	pace_begin(&pace, BORN);
	pace_note(&pace, 6000, BORN + 60 * SECOND, MS);
	assert_int_equal(rate(&pace, 6000, 60), 100);
	/* Just behind a look nothing else is known. */
	assert_int_equal(pace_rate(&pace, 6000, BORN + 60 * SECOND + MS, MS), 99);
	assert_int_equal(rate(&pace, 6070, 70), 7);
	/* A look that is too close behind another changes nothing. */
	pace_note(&pace, 6070, BORN + 61 * SECOND, MS);
	assert_int_equal(rate(&pace, 6070, 70), 7);
}

static void counts_that_shrink_are_no_rate(void **state)
{
	struct pace pace;
	(void)state;
	pace_begin(&pace, BORN);
	pace_note(&pace, 100, BORN + 5 * SECOND, MS);
	assert_int_equal(rate(&pace, 50, 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_seconds_count_from_the_beginning), cmocka_unit_test(what_is_looked_at_often_is_of_the_last_seconds),
		cmocka_unit_test(what_is_looked_at_seldom_is_of_the_time_between), cmocka_unit_test(counts_that_shrink_are_no_rate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
