/* SPDX-License-Identifier: MIT */
/* An index that is made while its trace grows is, byte for byte, the one that is made of the whole; where that cannot
   be, there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "match/follow.h"
#include "match/match.h"
#include "rounds.h"
#include "scene.h"
#include "table/index_file.h"
#include "table/table_valid.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	PROCESSES = 3,
	THREADS_EACH = 3,
	THREADS = PROCESSES * THREADS_EACH,
	ADDRESSES = 300,
	CALLS = 60000,
	LOOKS_MAX = 12
};

static const char whole_path[] = "whole.xht", path[] = "grown.xht", at_once_path[] = "at-once.index",
		  followed_path[] = "followed.index";
static struct scene scene;
static const bool is_over = false;
static uint32_t seed, processes[PROCESSES], threads[THREADS];

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

/* ---- a program ---- */

struct actor {
	bool is_live[PROCESSES][ADDRESSES];
	bool has_ended[PROCESSES];
	int64_t end_ns[PROCESSES];     /* that is not told yet; 0 */
	int64_t now, last_ns[THREADS]; /* of the thread's last point */
};

static void call_make(struct actor *actor, uint32_t which, const uint32_t *stacks)
{
	uint32_t process = which / THREADS_EACH, thread = threads[which], at = random_below(ADDRESSES),
		 to = random_below(ADDRESSES);
	bool *is_live = actor->is_live[process];
	uint64_t address = 0x1000 + at * 0x10, moved = 0x1000 + to * 0x10, size = random_below(100);
	scene.stack = stacks[random_below(3)];
	if (random_below(2000) == 0) { /* a contradiction */
		scene_alloc(&scene, thread, actor->now, address, size);
	} else if (random_below(100) == 0) {
		scene.flags = EVENT_FAILED;
		scene_realloc(&scene, thread, actor->now, actor->now, address, 0, size);
	} else if (!is_live[at]) {
		scene_alloc(&scene, thread, actor->now, address, size);
		is_live[at] = true;
	} else if (random_below(5) || is_live[to]) {
		scene_free(&scene, thread, actor->now, address);
		is_live[at] = false;
	} else {
		/* Some begin before what came since; a few even before what their own thread did meanwhile, in a
		   signal's handler. */
		int64_t lasted = random_below(50) ? random_below(20) : random_below(3000),
			most = actor->now - actor->last_ns[which];
		if (random_below(20))
			lasted = lasted < most ? lasted : most;
		scene_realloc(&scene, thread, actor->now - (lasted < actor->now ? lasted : 0), actor->now, address,
			      moved, size);
		is_live[at] = false;
		is_live[to] = true;
	}
	actor->last_ns[which] = actor->now;
}

static void process_over(struct actor *actor, uint32_t process)
{
	for (uint32_t i = 0; i < THREADS_EACH; i++)
		scene_block(&scene, threads[process * THREADS_EACH + i]);
	actor->now += 10;
	actor->end_ns[process] = actor->now++;
	actor->has_ended[process] = true;
}

/* It is told some time. */
static void end_tell(struct actor *actor, uint32_t process)
{
	if (actor->end_ns[process])
		scene_end(&scene, processes[process], actor->end_ns[process], TRACE_END_EXIT, 0);
	actor->end_ns[process] = 0;
}

static void blocks_write(struct actor *actor, uint32_t which, uint32_t *since)
{
	struct diag diag = {""};
	if (random_below(700) == 0)
		scene_block(&scene, threads[which]);
	if (++*since < 4000 || random_below(1000))
		return;
	if (random_below(2))
		end_tell(actor, random_below(PROCESSES));
	for (uint32_t i = 0; i < THREADS; i++)
		if (!actor->has_ended[i / THREADS_EACH])
			scene_block(&scene, threads[i]);
	assert_int_equal(writer_flush(scene.writer, &diag), 0);
	*since = 0;
}

static void earlier_find(struct actor *actor)
{
	for (uint32_t at = 0; at < ADDRESSES; at += 3) {
		scene_earlier(&scene, threads[0], actor->now, 0x100000 + at * 0x10, 16);
		scene_free(&scene, threads[1], ++actor->now, 0x100000 + (at + at % 2) * 0x10);
		scene_measure(&scene, threads[1], 16);
	}
}

/* Processes of some threads; at times one is alone, at times they take turns at each call. */
static void program_write(void)
{
	struct actor actor = {.now = 10};
	uint32_t which = 0, mixed = 0, since = 0;
	scene_open(&scene, whole_path);
	for (uint32_t i = 0; i < PROCESSES; i++)
		processes[i] = scene_process(&scene, 100 + i, TRACE_NONE, 0);
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = scene_thread(&scene, processes[i / THREADS_EACH], 100 + i);
	const uint32_t stacks[] = {0, scene_stack(&scene, 0x10, 0), scene_stack(&scene, 0x10, 0x20, 0)};
	uint32_t ends[PROCESSES];
	for (uint32_t k = 0; k < PROCESSES; k++)
		ends[k] = CALLS / 5 + random_below(2 * CALLS);
	for (uint32_t i = 0; i < CALLS; i++) {
		if (random_below(3000) == 0)
			mixed = random_below(3);
		if (mixed || random_below(3000) == 0)
			which = random_below(mixed == 1 ? THREADS_EACH : THREADS);
		if (i == CALLS / 10)
			earlier_find(&actor);
		for (uint32_t k = 0; k < PROCESSES; k++)
			if (i == ends[k])
				process_over(&actor, k);
		actor.now += random_below(4);
		if (!actor.has_ended[which / THREADS_EACH])
			call_make(&actor, which, stacks);
		blocks_write(&actor, which, &since);
	}
	for (uint32_t k = 0; k < PROCESSES; k++)
		end_tell(&actor, k);
	scene_close(&scene);
}

/* ---- its trace, while it grows ---- */

static struct trace *opened(const char *trace_path)
{
	struct diag diag = {""};
	struct trace *trace;
	assert_int_equal(trace_open(&trace, trace_path, &diag), 0);
	return trace;
}

static void grow(uint64_t size)
{
	uint8_t *bytes = malloc(size + 1);
	int from = open(whole_path, O_RDONLY), to = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(from >= 0 && to >= 0 && file_read(from, bytes, size, 0) == size && file_write(to, bytes, size, 0));
	close(from);
	close(to);
	free(bytes);
}

/* The latest time of which everything is in what has grown. */
static int64_t reported_ns(const struct trace *whole)
{
	struct trace *grown = opened(path);
	int64_t until_ns = INT64_MAX - 1;
	for (uint32_t i = trace_block_count(grown); i < trace_block_count(whole); i++) {
		struct trace_block head;
		trace_block_head(whole, i, &head);
		until_ns = head.first_ns <= until_ns ? head.first_ns - 1 : until_ns;
	}
	for (uint32_t i = 0; i < trace_dictionary(whole)->process_count; i++) {
		bool is_told = i < trace_dictionary(grown)->process_count &&
			       trace_dictionary(grown)->processes[i].end != TRACE_END_OPEN;
		const struct trace_process *process = &trace_dictionary(whole)->processes[i];
		if (!is_told && process->end != TRACE_END_OPEN && process->end_ns <= until_ns)
			until_ns = process->end_ns - 1;
	}
	trace_close(grown);
	return until_ns;
}

static struct heap_build index_begin(void)
{
	struct diag diag = {""};
	struct heap_build how = {.fd = heap_index_begin(".", &diag), .reserved_bytes = HEAP_INDEX_HEAD_BYTES};
	assert_true(how.fd >= 0);
	return how;
}

static void assert_same_files(const char *one, const char *other)
{
	struct stat status[2];
	assert_int_equal(stat(one, &status[0]) | stat(other, &status[1]), 0);
	assert_int_equal(status[0].st_size, status[1].st_size);
	uint8_t *bytes[2];
	for (int i = 0; i < 2; i++) {
		int fd = open(i ? other : one, O_RDONLY);
		bytes[i] = malloc((size_t)status[i].st_size);
		assert_int_equal(file_read(fd, bytes[i], (size_t)status[i].st_size, 0), status[i].st_size);
		close(fd);
	}
	assert_memory_equal(bytes[0], bytes[1], (size_t)status[0].st_size);
	free(bytes[0]);
	free(bytes[1]);
}

static int size_compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return left < right ? -1 : left > right;
}

/* Follow the file while it grows to random sizes. What is told is true, or is anything. 0, or -ESTALE. */
static int follow_random(struct heap_follow *followed, const struct trace *whole, bool is_true, struct diag *diag)
{
	uint64_t sizes[LOOKS_MAX], size_bytes = trace_dictionary(whole)->size_bytes;
	uint32_t count = 1 + random_below(LOOKS_MAX), limit = 1 + random_below(2000);
	int error = 0;
	for (uint32_t i = 0; i < count; i++)
		sizes[i] = 4096 + random_below((uint32_t)(size_bytes - 4096));
	qsort(sizes, count, sizeof(*sizes), size_compare);
	unlink(path);
	for (uint32_t i = 0; i < count && !error; i++) {
		grow(sizes[i]);
		int64_t true_ns = reported_ns(whole);
		error = heap_follow_advance(followed,
					    is_true ? true_ns : true_ns + (int64_t)random_below(i ? 20 : limit), 0,
					    &is_over, diag);
		assert_true(!error || (error == -ESTALE && !is_true));
	}
	if (!error)
		grow(size_bytes);
	return error;
}

/* What was followed, at `path`, has the index that is made of it at once. */
static void follow_compare(struct trace *trace, struct heap_table *table)
{
	struct diag diag = {""};
	assert_true(heap_table_is_valid(table));
	assert_int_equal(heap_index_write(table, path, followed_path, &diag), 0);
	heap_table_free(table);
	struct heap_build how = index_begin();
	assert_int_equal(heap_table_build(&table, trace, &how, &diag), 0);
	assert_int_equal(heap_index_write(table, path, at_once_path, &diag), 0);
	heap_table_free(table);
	trace_close(trace);
	assert_same_files(followed_path, at_once_path);
}

static const struct heap_follow_increments increments = {.least_events = 1, .least_part = 16, .step_events = 4};

/* 0, or -ESTALE. */
static int round_run(bool is_true)
{
	struct diag diag = {""};
	struct trace *whole, *trace;
	struct heap_table *table;
	program_write();
	whole = opened(whole_path);
	struct heap_build how = index_begin();
	struct heap_follow *followed = heap_follow_new(path, &how, &increments);
	int error = follow_random(followed, whole, is_true, &diag);
	error = error ? error : heap_follow_end(followed, &trace, &table, &diag);
	heap_follow_free(followed);
	trace_close(whole);
	assert_true(!error || (error == -ESTALE && !is_true));
	if (error)
		return error;
	assert_true(table->count > 10000);
	follow_compare(trace, table);
	return 0;
}

static void test_told_truly(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= rounds(40); i++) {
		seed = i * 7919;
		assert_int_equal(round_run(true), 0);
	}
}

static void test_told_wrongly(void **state)
{
	(void)state;
	uint32_t made = 0, refused = 0;
	for (uint32_t i = 1; i <= rounds(40); i++) {
		seed = i * 104729;
		*(round_run(false) ? &refused : &made) += 1;
	}
	assert_true(made > 0 && refused > 0);
}

/* ---- what cannot be known in time ---- */

static struct heap_follow *follow;
static struct diag reason;

static int begin(void **state)
{
	(void)state;
	scene_open(&scene, path);
	for (uint32_t i = 0; i < PROCESSES; i++)
		processes[i] = scene_process(&scene, 100 + i, TRACE_NONE, 0);
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = scene_thread(&scene, processes[i / THREADS_EACH], 100 + i);
	struct heap_build how = index_begin();
	follow = heap_follow_new(path, &how, &increments);
	reason = (struct diag){""};
	return 0;
}

static void flush(void)
{
	for (uint32_t i = 0; i < THREADS; i++)
		scene_block(&scene, threads[i]);
	assert_int_equal(writer_flush(scene.writer, &reason), 0);
}

static int look(int64_t until_ns)
{
	flush();
	return heap_follow_advance(follow, until_ns, 0, &is_over, &reason);
}

static void finish(int expected)
{
	struct trace *trace;
	struct heap_table *table;
	scene_close(&scene);
	int error = heap_follow_end(follow, &trace, &table, &reason);
	heap_follow_free(follow);
	assert_int_equal(error, expected);
	if (!error)
		follow_compare(trace, table);
}

static void test_end_told_late(void **state)
{
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	scene_alloc(&scene, threads[THREADS_EACH], 30, 0x1000, 5);
	assert_int_equal(look(40), 0);
	scene_end(&scene, processes[0], 20, TRACE_END_EXIT, 0);
	scene_alloc(&scene, threads[THREADS_EACH], 50, 0x2000, 5);
	assert_int_equal(look(60), -ESTALE);
	assert_string_equal(reason.text, "the end of a process is earlier than events that were matched already");
	finish(-ESTALE);
}

/* A thread that goes back in time, as one does whose signal handler calls the heap, is not cut there. */
static void test_goes_back(void **state)
{
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	scene_free(&scene, threads[0], 180, 0x1000);
	scene_alloc(&scene, threads[1], 160, 0x4000, 7);
	scene_free(&scene, threads[1], 200, 0x4000);
	flush();
	scene_realloc(&scene, threads[0], 150, 210, 0x1000, 0x2000, 6);
	assert_int_equal(look(170), 0);
	finish(0);
}

/* After each look the sums are those of the points so far; blocks of a process that has ended are outstanding. */
static void test_sums(void **state)
{
	(void)state;
	struct matching_sums sums;
	assert_true(heap_follow_sums(follow, &sums));
	assert_int_equal(sums.site_count, 0);
	matching_sums_fini(&sums);
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	scene_alloc(&scene, threads[0], 20, 0x2000, 70);
	scene_free(&scene, threads[0], 30, 0x2000);
	assert_int_equal(look(40), 0);
	assert_true(heap_follow_sums(follow, &sums));
	/* That of the allocations, and that of the free. */
	assert_int_equal(sums.site_count, 2);
	assert_int_equal(sums.numbers[0].total_count, 2);
	assert_int_equal(sums.numbers[0].total_bytes, 75);
	assert_int_equal(sums.numbers[0].outstanding_bytes, 5);
	assert_int_equal(sums.live_bytes, 5);
	assert_int_equal(sums.peak.bytes, 75);
	assert_int_equal(sums.peak.time_ns, 20);
	assert_int_equal(sums.until_ns, 30);
	matching_sums_fini(&sums);
	scene_alloc(&scene, threads[THREADS_EACH], 50, 0x3000, 100);
	scene_end(&scene, processes[0], 60, TRACE_END_EXIT, 0);
	scene_alloc(&scene, threads[THREADS_EACH], 70, 0x4000, 1);
	assert_int_equal(look(80), 0);
	assert_true(heap_follow_sums(follow, &sums));
	assert_int_equal(sums.numbers[0].total_count, 4);
	assert_int_equal(sums.numbers[0].outstanding_count, 3);
	assert_int_equal(sums.numbers[0].outstanding_bytes, 106);
	assert_int_equal(sums.peak.bytes, 105);
	matching_sums_fini(&sums);
	finish(0);
}

/* A child frees blocks of its parent: one that lives on in the parent, and one that the parent has freed before the fork
   became known, or since. */
static void test_forked(void **state)
{
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	scene_alloc(&scene, threads[0], 11, 0x2000, 6);
	scene_alloc(&scene, threads[0], 12, 0x3000, 7);
	scene_free(&scene, threads[0], 13, 0x3000);
	assert_int_equal(look(20), 0);
	uint32_t child = scene_process(&scene, 200, processes[0], 30), thread = scene_thread(&scene, child, 200);
	scene_free(&scene, threads[0], 25, 0x2000);
	scene_free(&scene, thread, 40, 0x1000);
	scene_free(&scene, thread, 50, 0x2000);
	scene_free(&scene, thread, 60, 0x3000);
	scene_block(&scene, thread);
	assert_int_equal(look(70), 0);
	scene_close(&scene);
	struct trace *trace;
	struct heap_table *table, *whole;
	assert_int_equal(heap_follow_end(follow, &trace, &table, &reason), 0);
	heap_follow_free(follow);
	assert_int_equal(heap_table_build(&whole, trace, NULL, &reason), 0);
	assert_int_equal(table->processes[child].inherited_freed, 3);
	assert_int_equal(table->unknown_frees, 0);
	assert_memory_equal(table->processes, whole->processes,
			    table->dictionary->process_count * sizeof(*table->processes));
	heap_table_free(table);
	heap_table_free(whole);
	trace_close(trace);
}

static void test_forked_late(void **state)
{
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	assert_int_equal(look(20), 0);
	scene_process(&scene, 200, processes[0], 10);
	finish(-ESTALE);
	assert_string_equal(reason.text, "a fork is earlier than events that were matched already");
}

/* What was read must stay: a file that is cut, or written again, is not read on. */
static void test_cut_short(void **state)
{
	struct stat status;
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	assert_int_equal(look(20), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(truncate(path, status.st_size - 8), 0);
	assert_int_equal(heap_follow_advance(follow, 20, 0, &is_over, &reason), -ESTALE);
	assert_string_equal(reason.text, "what was read of it before is not there any more");
	finish(-ESTALE);
}

static void test_written_again(void **state)
{
	struct stat before, after;
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	flush();
	assert_int_equal(stat(path, &before), 0);
	scene_alloc(&scene, threads[0], 20, 0x2000, 5);
	assert_int_equal(look(30), 0);
	assert_int_equal(stat(path, &after), 0);
	/* as long as before, with other bytes where the last block was */
	assert_int_equal(truncate(path, before.st_size), 0);
	assert_int_equal(truncate(path, after.st_size), 0);
	assert_int_equal(heap_follow_advance(follow, 30, 0, &is_over, &reason), -ESTALE);
	finish(-ESTALE);
}

/* A loss is told before anything after it is matched. */
static void test_lost(void **state)
{
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	assert_int_equal(look(20), 0);
	scene_gap(&scene, processes[0], threads[0], 12, 14, 3);
	scene_alloc(&scene, threads[0], 30, 0x1000, 5);
	assert_int_equal(look(40), 0);
	finish(0);
}

/* A conflict is no loss: when it was settled, nothing was lost. */
static void test_lost_late(void **state)
{
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	scene_alloc(&scene, threads[0], 30, 0x1000, 5);
	scene_free(&scene, threads[0], 5000, 0x1000);
	assert_int_equal(look(6000), 0);
	scene_gap(&scene, processes[1], threads[THREADS_EACH], 12, 14, 3);
	scene_gap(&scene, processes[0], threads[0], 31, 32, 3);
	scene_alloc(&scene, threads[0], 7000, 0x1000, 5);
	assert_int_equal(look(8000), 0);
	scene_gap(&scene, processes[0], threads[0], 29, 32, 3);
	finish(-ESTALE);
	assert_string_equal(reason.text, "a loss is earlier than events that were matched already");
}

/* Of which nothing was matched before, everything can be known. */
static void test_whole(void **state)
{
	(void)state;
	scene_alloc(&scene, threads[0], 10, 0x1000, 5);
	uint32_t child = scene_process(&scene, 200, processes[0], 30);
	scene_free(&scene, scene_thread(&scene, child, 200), 40, 0x1000);
	scene_gap(&scene, processes[0], threads[0], 12, 14, 3);
	finish(0);
}

static int end(void **state)
{
	(void)state;
	const char *const paths[] = {whole_path, path, at_once_path, followed_path};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		unlink(paths[i]);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_told_truly, end),
		cmocka_unit_test_teardown(test_told_wrongly, end),
		TEST(test_end_told_late),
		TEST(test_goes_back),
		TEST(test_sums),
		TEST(test_forked),
		TEST(test_forked_late),
		TEST(test_cut_short),
		TEST(test_written_again),
		TEST(test_lost),
		TEST(test_lost_late),
		TEST(test_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
