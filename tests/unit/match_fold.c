/* SPDX-License-Identifier: MIT */
/*
 * Aggregated rows: what ended early becomes sums (src/match/fold.c), and questions are answered from them
 * (src/query/folded.c). A folded trace says the same as the whole one, or that it does not know.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "match/fold.h"
#include "match/match.h"
#include "query/folded.h"
#include "query/window.h"
#include "scene.h"
#include "table/table_valid.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

enum { EVENTS = 4000, UNTIL = 20000, SIZE_SMALL = 16, SIZE_LARGE = 4096 };

static struct diag diag;
static uint32_t process;

static const char path[] = "whole.xht", folded_path[] = "folded.xht", twice_path[] = "twice.xht";

/* A trace and its table. */
struct question {
	struct trace *trace;
	struct heap_table *table;
};

static int begin(void **state)
{
	enum { BLOCKS = 300 };
	struct scene scene;
	bool is_live[BLOCKS] = {false};
	(void)state;
	scene_open(&scene, path);
	process = scene_process(&scene, 100, TRACE_NONE, 0);
	const uint32_t threads[] = {scene_thread(&scene, process, 100), scene_thread(&scene, process, 101)};
	const uint32_t stacks[] = {scene_stack(&scene, 0x1000, 0), scene_stack(&scene, 0x1000, 0x2000, 0)};
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t at = (i * 2654435761u >> 12) % BLOCKS, which = at % 2;
		uint64_t address = 0x10000 + 0x2000 * (uint64_t)at;
		scene.stack = stacks[which];
		scene_context(&scene, threads[which], i / 7 % 3 ? i / 7 : 0, i / 7);
		if (!is_live[at])
			scene_alloc(&scene, threads[which], 10 * (int64_t)i, address, which ? SIZE_LARGE : SIZE_SMALL);
		else if (i % 5)
			scene_free(&scene, threads[which], 10 * (int64_t)i, address);
		else
			scene_realloc(&scene, threads[which], 10 * (int64_t)i, 10 * (int64_t)i + 2, address,
				      address + 0x1000, which ? SIZE_LARGE : SIZE_SMALL);
		if (is_live[at] && !(i % 5))
			scene_free(&scene, threads[which], 10 * (int64_t)i + 4, address + 0x1000);
		is_live[at] = !is_live[at];
	}
	scene_end(&scene, process, 10 * EVENTS, TRACE_END_EXIT, 0);
	scene_close(&scene);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	unlink(folded_path);
	unlink(twice_path);
	return 0;
}

static struct question asked(const char *of)
{
	struct question question;
	assert_int_equal(trace_open(&question.trace, of, &diag), 0);
	assert_int_equal(heap_table_build(&question.table, question.trace, NULL, &diag), 0);
	assert_true(heap_table_is_valid(question.table));
	return question;
}

static void question_end(struct question *question)
{
	heap_table_free(question->table);
	trace_close(question->trace);
}

static struct heap_numbers numbers_of(const struct heap_table *table, struct heap_range range, enum heap_by by,
				      uint32_t part)
{
	struct heap_filter filter;
	struct heap_window window;
	struct heap_numbers numbers = {0};
	heap_filter_init_for(&filter, table);
	assert_int_equal(heap_folded_check(table, &filter, range, by, &diag), 0);
	heap_window_make(&window, table, &filter, range, by);
	for (uint32_t i = 0; i < window.cell_count; i++)
		if (by == HEAP_BY_NONE || window.cells[i].by == part)
			heap_numbers_add(&numbers, &window.numbers[i]);
	heap_window_fini(&window);
	heap_filter_fini(&filter);
	return numbers;
}

static void assert_same_numbers(const struct question *one, const struct question *other, struct heap_range range,
				enum heap_by by, uint32_t part)
{
	const struct heap_numbers left = numbers_of(one->table, range, by, part),
				  right = numbers_of(other->table, range, by, part);
	assert_true(left.total_count > 0);
	assert_int_equal(left.total_count, right.total_count);
	assert_int_equal(left.total_bytes, right.total_bytes);
	assert_int_equal(left.outstanding_count, right.outstanding_count);
	assert_int_equal(left.outstanding_bytes, right.outstanding_bytes);
	assert_int_equal(left.realloc_count, right.realloc_count);
	assert_int_equal(left.realloc_moved_count, right.realloc_moved_count);
	assert_int_equal(left.temporary_count, right.temporary_count);
	assert_int_equal(left.peak_count, right.peak_count);
	assert_int_equal(left.peak_bytes, right.peak_bytes);
}

/* 0, or that it is not known, with a reason. */
static int check(const struct question *question, struct heap_filter *filter, struct heap_range range, enum heap_by by)
{
	diag.text[0] = 0;
	int error = heap_folded_check(question->table, filter, range, by, &diag);
	assert_true(error == 0 || (error == -ENOTSUP && diag.text[0]));
	return error;
}

static void sums_say_what_events_said(void **state)
{
	(void)state;
	assert_int_equal(heap_fold(folded_path, path, UNTIL, &diag), 0);
	struct question whole = asked(path), folded = asked(folded_path);
	const struct heap_range all = {0, whole.table->duration_ns}, late = {UNTIL + 1, whole.table->duration_ns};
	assert_int_equal(heap_folded_until_ns(whole.table), INT64_MIN);
	assert_int_equal(heap_folded_until_ns(folded.table), UNTIL);
	assert_true(folded.table->count > 0 && folded.table->count < whole.table->count * 2 / 3);
	assert_int_equal(folded.table->dictionary->event_count, whole.table->dictionary->event_count);
	assert_same_numbers(&folded, &whole, all, HEAP_BY_NONE, 0);
	assert_same_numbers(&folded, &whole, late, HEAP_BY_NONE, 0);
	for (uint32_t thread = 0; thread < 2; thread++)
		assert_same_numbers(&folded, &whole, all, HEAP_BY_THREAD, thread);
	assert_same_numbers(&folded, &whole, all, HEAP_BY_PROCESS, process);
	uint64_t recorded = 0;
	for (uint32_t i = 0; i < folded.table->dictionary->sum_count; i++)
		recorded += folded.table->dictionary->sums[i].recorded;
	assert_int_equal(recorded + folded.table->count, whole.table->count);
	question_end(&whole);
	question_end(&folded);
}

/* Blocks that were alive when their process ended are outstanding, unless only live ones are asked for: by events, by
   the sums of the table, and by sums that were folded. */
/* The context of the thread's event at a time. */
static struct thread_context context_at(struct trace *trace, uint32_t thread, int64_t time_ns)
{
	struct trace_cursor *cursor = trace_cursor_new(trace);
	struct thread_context found = {{0, 0}, 0};
	struct trace_block block;
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		assert_int_equal(trace_cursor_read(cursor, i, &block, &diag), 0);
		for (uint32_t row = 0; row < block.count; row++) {
			const struct thread_context *context = trace_block_context(&block, row);
			if (block.thread == thread && block.time_ns[row] == time_ns && context)
				found = *context;
		}
	}
	trace_cursor_free(cursor);
	return found;
}

static void events_that_are_kept_have_their_contexts(void **state)
{
	struct question whole, folded;
	struct trace_block block;
	uint32_t kept = 0;
	(void)state;
	assert_int_equal(heap_fold(folded_path, path, UNTIL, &diag), 0);
	whole = asked(path);
	folded = asked(folded_path);
	struct trace_cursor *cursor = trace_cursor_new(folded.trace);
	for (uint32_t i = 0; i < trace_block_count(folded.trace); i++) {
		assert_int_equal(trace_cursor_read(cursor, i, &block, &diag), 0);
		/* Some of the blocks that live on, and of all that comes later. */
		for (uint32_t row = 0; row < block.count; row += 17, kept++) {
			const struct thread_context wanted = context_at(whole.trace, block.thread, block.time_ns[row]);
			const struct thread_context none = {{0, 0}, 0}, *found = trace_block_context(&block, row);
			assert_true(thread_context_is_same(found ? found : &none, &wanted));
		}
	}
	trace_cursor_free(cursor);
	assert_true(kept > 20);
	question_end(&whole);
	question_end(&folded);
}

static void ended_processes_have_nothing_left(void **state)
{
	struct scene scene;
	(void)state;
	scene_open(&scene, path);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t of = scene_process(&scene, 100 + i, TRACE_NONE, 5000 * i);
		const uint32_t thread = scene_thread(&scene, of, 100 + i);
		for (uint32_t block = 0; block < 3; block++)
			scene_alloc(&scene, thread, 5000 * i + 10 * (block + 1), 0x10000 * (block + 1), SIZE_LARGE);
		scene_free(&scene, thread, 5000 * i + 100, 0x10000);
		if (!i)
			scene_end(&scene, of, 1000, TRACE_END_EXIT, 0);
	}
	scene_close(&scene);
	assert_int_equal(heap_fold(folded_path, path, 3000, &diag), 0);
	const char *const paths[] = {path, folded_path};
	for (unsigned i = 0; i < 4; i++) {
		struct question question = asked(paths[i % 2]);
		struct heap_filter filter;
		struct heap_window window;
		const bool is_live = i < 2;
		heap_filter_init_for(&filter, question.table);
		if (is_live)
			heap_filter_forget_ended(&filter, question.table);
		heap_window_make(&window, question.table, &filter, (struct heap_range){0, question.table->duration_ns},
				 HEAP_BY_NONE);
		assert_int_equal(window.totals.total_count, 6);
		assert_int_equal(window.totals.outstanding_count, is_live ? 2 : 4);
		assert_int_equal(window.totals.outstanding_bytes, (is_live ? 2 : 4) * SIZE_LARGE);
		heap_window_fini(&window);
		heap_filter_fini(&filter);
		question_end(&question);
	}
}

/* Sums of processes that ended with live blocks have a class, too. */
static void sums_have_window_classes(void **state)
{
	struct scene scene;
	const int64_t ends_ns[] = {1000, 2000, 3000};
	(void)state;
	scene_open(&scene, path);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t one = scene_process(&scene, 200 + i, TRACE_NONE, 0);
		scene_alloc(&scene, scene_thread(&scene, one, 200 + i), 100, 0x1000, (uint64_t)1 << i);
		scene_end(&scene, one, ends_ns[i], i % 2 ? TRACE_END_EXEC : TRACE_END_EXIT, 0);
	}
	scene_close(&scene);
	assert_int_equal(heap_fold(folded_path, path, 2500, &diag), 0);
	struct question whole = asked(path), folded = asked(folded_path);
	const struct heap_range middle = {1500, 2500};
	assert_int_equal(folded.table->dictionary->sum_count, 2);
	for (enum heap_class class = 0; class <= HEAP_CLASS_NONE; class ++) {
		uint64_t expected = class == HEAP_AOFO ? 2 + 4 : 0;
		assert_int_equal(numbers_of(whole.table, middle, HEAP_BY_CLASS, class).total_bytes, expected);
		assert_int_equal(numbers_of(folded.table, middle, HEAP_BY_CLASS, class).total_bytes, expected);
	}
	question_end(&whole);
	question_end(&folded);
}

/* Folded once, and once more further on, is as folded to there at once. */
static void what_is_folded_can_be_folded_again(void **state)
{
	(void)state;
	assert_int_equal(heap_fold(folded_path, path, UNTIL / 2, &diag), 0);
	assert_int_equal(heap_fold(twice_path, folded_path, UNTIL, &diag), 0);
	struct question whole = asked(path), twice = asked(twice_path);
	const struct heap_range all = {0, whole.table->duration_ns};
	assert_int_equal(heap_folded_until_ns(twice.table), UNTIL);
	assert_same_numbers(&twice, &whole, all, HEAP_BY_NONE, 0);
	assert_int_equal(twice.table->dictionary->event_count, whole.table->dictionary->event_count);
	question_end(&whole);
	question_end(&twice);
}

static void what_sums_do_not_say_is_not_answered(void **state)
{
	struct heap_filter filter;
	(void)state;
	assert_int_equal(heap_fold(folded_path, path, UNTIL, &diag), 0);
	struct question folded = asked(folded_path);
	const struct heap_range all = {0, folded.table->duration_ns}, late = {UNTIL + 1, folded.table->duration_ns},
				middle = {UNTIL / 4, UNTIL / 2};
	heap_filter_init_for(&filter, folded.table);
	assert_int_equal(check(&folded, &filter, all, HEAP_BY_NONE), 0);
	assert_int_equal(check(&folded, &filter, all, HEAP_BY_THREAD), 0);
	assert_int_equal(check(&folded, &filter, late, HEAP_BY_LIFETIME), 0);
	assert_int_equal(check(&folded, &filter, middle, HEAP_BY_NONE), -ENOTSUP);
	assert_non_null(strstr(diag.text, "-range"));
	assert_int_equal(check(&folded, &filter, all, HEAP_BY_LIFETIME), -ENOTSUP);
	assert_non_null(strstr(diag.text, "-by"));
	/* Blocks of a stack have one size here, so by size each sum is one part. */
	assert_int_equal(check(&folded, &filter, all, HEAP_BY_SIZE), 0);
	filter.lifetime_ns = (struct heap_bounds){2000, UINT64_MAX};
	assert_int_equal(check(&folded, &filter, all, HEAP_BY_NONE), -ENOTSUP);
	assert_non_null(strstr(diag.text, "-lifetime"));
	filter.lifetime_ns = (struct heap_bounds){0, UINT64_MAX};
	filter.size_bytes = (struct heap_bounds){SIZE_LARGE, UINT64_MAX};
	assert_int_equal(check(&folded, &filter, all, HEAP_BY_NONE), 0);
	heap_filter_fini(&filter);
	question_end(&folded);
}

/* The peak of all of the time is kept; that of a part that reaches into what is folded is not known. */
static void the_peak_is_kept(void **state)
{
	struct heap_filter filter;
	struct heap_peak peak;
	int64_t from_ns;
	bool is_folded;
	(void)state;
	assert_int_equal(heap_fold(folded_path, path, 10 * EVENTS, &diag), 0);
	struct question whole = asked(path), folded = asked(folded_path);
	const struct heap_range all = {0, whole.table->duration_ns}, most = {1, whole.table->duration_ns};
	heap_filter_init_for(&filter, folded.table);
	assert_true(heap_folded_knows_peak(folded.table, &filter, all));
	assert_false(heap_folded_knows_peak(folded.table, &filter, most));
	assert_true(heap_folded_peak(&peak, folded.table, &filter, all, &from_ns, &is_folded));
	assert_true(is_folded);
	assert_int_equal(peak.bytes, whole.table->peak.bytes);
	assert_int_equal(peak.time_ns, whole.table->peak.time_ns);
	assert_int_equal(heap_folded_late_bytes(folded.table), 0);
	heap_filter_fini(&filter);
	question_end(&whole);
	question_end(&folded);
}

/* Where something is missing, nothing is folded, and no file is left behind. */
static void a_trace_with_losses_is_not_folded(void **state)
{
	struct scene scene;
	(void)state;
	scene_open(&scene, path);
	process = scene_process(&scene, 100, TRACE_NONE, 0);
	uint32_t thread = scene_thread(&scene, process, 100);
	scene_alloc(&scene, thread, 10, 0x1000, 10);
	scene_close(&scene);
	assert_int_not_equal(heap_fold(folded_path, "nothing.xht", UNTIL, &diag), 0);
	assert_int_not_equal(access(folded_path, F_OK), 0);
	assert_int_equal(truncate(path, 300), 0);
	assert_int_not_equal(heap_fold(folded_path, path, UNTIL, &diag), 0);
	assert_int_not_equal(access(folded_path, F_OK), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(sums_say_what_events_said),
		TEST(events_that_are_kept_have_their_contexts),
		TEST(ended_processes_have_nothing_left),
		TEST(sums_have_window_classes),
		TEST(what_is_folded_can_be_folded_again),
		TEST(what_sums_do_not_say_is_not_answered),
		TEST(the_peak_is_kept),
		TEST(a_trace_with_losses_is_not_folded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
