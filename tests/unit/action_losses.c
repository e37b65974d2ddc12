/* SPDX-License-Identifier: MIT */
/* What keeps a trace from being complete: each reason by itself, and how many calls the first line of a report
   names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "action/report/losses.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* All is well with it. */
static struct trace_dictionary whole(void)
{
	return (struct trace_dictionary){.is_complete = true, .event_count = 10};
}

static void assert_judged(const struct trace_dictionary *dictionary, bool is_complete, uint64_t missing,
			  const char *text)
{
	assert_int_equal(losses_is_complete(dictionary), is_complete);
	assert_int_equal(losses_missing_calls(dictionary), missing);
	assert_string_equal(losses_missing_text(dictionary).data, text);
}

static void a_trace_that_lacks_nothing_is_complete(void **state)
{
	struct trace_dictionary dictionary = whole();
	(void)state;
	assert_judged(&dictionary, true, 0, "");
	/* Of these the calls are there. */
	dictionary.ends.truncated = dictionary.ends.unwindless = dictionary.in_flight_count =
		dictionary.statistics.suppressed = 5;
	dictionary.statistics.heapless = dictionary.statistics.pythonless = dictionary.dropped_events = 5;
	struct trace_gap stacks = {.stacks = 9};
	dictionary.gaps = &stacks;
	dictionary.gap_count = 1;
	assert_judged(&dictionary, true, 0, "");
}

static void a_file_without_its_end_is_not(void **state)
{
	struct trace_dictionary dictionary = whole();
	(void)state;
	dictionary.is_complete = false;
	assert_judged(&dictionary, false, 0, "");
}

static void lost_events_are_missing_calls(void **state)
{
	struct trace_gap gaps[] = {
		{.count = {[EVENT_ALLOC] = 1}},
		{.process = TRACE_NONE, .thread = TRACE_NONE, .count = {[EVENT_FREE] = 1234, [EVENT_REALLOC] = 2}}};
	struct trace_dictionary dictionary = whole();
	(void)state;
	dictionary.gaps = gaps;
	dictionary.gap_count = 1;
	assert_judged(&dictionary, false, 1, "1 call is missing");
	dictionary.gap_count = 2;
	assert_judged(&dictionary, false, 1237, "1,237 calls are missing");
}

static void so_are_calls_without_room(void **state)
{
	struct trace_dictionary file = whole(), thread = whole(), sample = whole();
	(void)state;
	file.unwritten_events = 3;
	assert_judged(&file, false, 3, "3 calls are missing");
	thread.statistics.untraced_calls = UINT64_MAX;
	assert_judged(&thread, false, UINT64_MAX, "18,446,744,073,709,551,615 calls are missing");
	sample.statistics.unwatched = 4;
	assert_judged(&sample, false, 4, "4 calls are missing");
	sample.unwritten_events = 5;
	sample.statistics.untraced_calls = 6;
	assert_judged(&sample, false, 15, "15 calls are missing");
}

static void what_cannot_be_counted_is_named(void **state)
{
	const struct trace_option unhooked = {TRACE_OPTION_UNHOOKED, "process 1: ..."},
				  execs = {TRACE_OPTION_UNTRACED_EXECS, "process 1: ..."};
	const struct trace_option attached[] = {
		{"attached", "yes"}, {TRACE_OPTION_EARLIER_MISSING, "process 1: ..."}, {"sample", "1024"}};
	struct trace_dictionary dictionary = whole();
	(void)state;
	dictionary.options = &unhooked;
	dictionary.option_count = 1;
	assert_judged(&dictionary, false, 0, "not every function could be hooked");
	dictionary.options = &execs;
	assert_judged(&dictionary, false, 0, "programs may have run untraced");
	dictionary.options = attached;
	assert_judged(&dictionary, true, 0, "");
	dictionary.option_count = 2;
	assert_judged(&dictionary, false, 0, "not all earlier blocks are known");
	/* A sample has none of these. */
	dictionary.option_count = 3;
	assert_judged(&dictionary, true, 0, "");
}

static void so_are_processes_that_ran_untraced(void **state)
{
	struct trace_process processes[] = {
		{.note = ""}, {.note = "it has no function of an allocator"}, {.note = "its parent runs untraced"}};
	struct trace_dictionary dictionary = whole();
	(void)state;
	dictionary.processes = processes;
	dictionary.process_count = 1;
	assert_judged(&dictionary, true, 0, "");
	dictionary.process_count = 2;
	assert_judged(&dictionary, false, 0, "1 process ran untraced");
	dictionary.process_count = 3;
	assert_judged(&dictionary, false, 0, "2 processes ran untraced");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_that_lacks_nothing_is_complete),
		cmocka_unit_test(a_file_without_its_end_is_not),
		cmocka_unit_test(lost_events_are_missing_calls),
		cmocka_unit_test(so_are_calls_without_room),
		cmocka_unit_test(what_cannot_be_counted_is_named),
		cmocka_unit_test(so_are_processes_that_ran_untraced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
