/* SPDX-License-Identifier: MIT */
/* Rates: of the last seconds where what is counted is looked at often, of the time between two looks where it is
   not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "session/drain/event_rate.h"

enum { MS = 3000, SECOND = 1000 * MS, BORN = 77 }; /* ticks */

static uint64_t rate_at(const struct event_rate *rate, uint64_t events, uint64_t seconds)
{
	return event_rate_get(rate, events, BORN + seconds * SECOND, MS);
}

static void the_first_seconds_count_from_the_beginning(void **state)
{
	struct event_rate rate;
	(void)state;
	event_rate_begin(&rate, BORN);
	assert_int_equal(event_rate_get(&rate, 5, BORN, MS), 0);
	assert_int_equal(event_rate_get(&rate, 5, BORN - 1, MS), 0);
	assert_int_equal(event_rate_get(&rate, 10, BORN + SECOND / 4, MS), 40);
	assert_int_equal(rate_at(&rate, 300, 3), 100);
}

static void what_is_looked_at_often_is_of_the_last_seconds(void **state)
{
	struct event_rate rate;
	uint64_t events = 0;
	(void)state;
	event_rate_begin(&rate, BORN);
	/* 1000 a second, then 10, then none. */
	for (uint64_t second = 1; second <= 30; second++) {
		events += second <= 10 ? 1000 : second <= 20 ? 10 : 0;
		event_rate_note(&rate, events, BORN + second * SECOND, MS);
		uint64_t wanted = second <= 10 ? 1000 : second <= 20 ? 10 : 0;
		if (second % 10 > 3 || second <= 10)
			assert_int_equal(rate_at(&rate, events, second), wanted);
	}
}

static void what_is_looked_at_seldom_is_of_the_time_between(void **state)
{
	struct event_rate rate;
	(void)state;
	event_rate_begin(&rate, BORN);
	event_rate_note(&rate, 6000, BORN + 60 * SECOND, MS);
	assert_int_equal(rate_at(&rate, 6000, 60), 100);
	/* Just behind a look nothing else is known. */
	assert_int_equal(event_rate_get(&rate, 6000, BORN + 60 * SECOND + MS, MS), 99);
	assert_int_equal(rate_at(&rate, 6070, 70), 7);
	/* A look that is too close behind another changes nothing. */
	event_rate_note(&rate, 6070, BORN + 61 * SECOND, MS);
	assert_int_equal(rate_at(&rate, 6070, 70), 7);
}

static void counts_that_shrink_are_no_rate(void **state)
{
	struct event_rate rate;
	(void)state;
	event_rate_begin(&rate, BORN);
	event_rate_note(&rate, 100, BORN + 5 * SECOND, MS);
	assert_int_equal(rate_at(&rate, 50, 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_seconds_count_from_the_beginning),
		cmocka_unit_test(what_is_looked_at_often_is_of_the_last_seconds),
		cmocka_unit_test(what_is_looked_at_seldom_is_of_the_time_between),
		cmocka_unit_test(counts_that_shrink_are_no_rate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
