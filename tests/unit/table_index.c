/* SPDX-License-Identifier: MIT */
/* The index (src/table/index_file.c): what was written is read again, and only what is whole and of this trace. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

#include "match/match.h"
#include "query/scan.h"
#include "scene.h"
#include "table/index_file.h"
#include "table/table_valid.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

static struct trace *trace;
static struct heap_table *table;
static struct diag diag;

static const char path[] = "index.xht", index_path[] = "index.xht.index", elsewhere[] = "elsewhere.index";

static void trace_write(const char *to, uint32_t events)
{
	enum { BLOCKS = 500 };
	struct scene scene;
	bool is_live[BLOCKS] = {false};
	scene_open(&scene, to);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	scene.stack = scene_stack(&scene, 0x1000, 0x2000, 0);
	for (uint32_t i = 0; i < events; i++) {
		uint32_t at = i * 7919 % BLOCKS;
		if (is_live[at])
			scene_free(&scene, thread, 10 * (int64_t)i, 0x1000 + 64 * (uint64_t)at);
		else
			scene_alloc(&scene, thread, 10 * (int64_t)i, 0x1000 + 64 * (uint64_t)at, 1 + i % 50);
		is_live[at] = !is_live[at];
	}
	scene_close(&scene);
}

static int index_make(const char *to)
{
	struct heap_build how = {.fd = heap_index_begin(".", &diag), .reserved_bytes = HEAP_INDEX_HEAD_BYTES};
	if (how.fd < 0 || heap_table_build(&table, trace, &how, &diag) != 0)
		return -1;
	return heap_index_write(table, path, to, &diag);
}

static int begin(void **state)
{
	(void)state;
	trace_write(path, 6000);
	return trace_open(&trace, path, &diag) || index_make(index_path);
}

static int end(void **state)
{
	(void)state;
	heap_table_free(table);
	trace_close(trace);
	unlink(path);
	unlink(index_path);
	unlink(elsewhere);
	return 0;
}

static int index_read(struct heap_table **out)
{
	const char *paths[] = {index_path, elsewhere};
	return heap_index_read(out, trace, path, paths, 2);
}

static void assert_refused(void)
{
	struct heap_table *found;
	assert_int_equal(index_read(&found), -ENOENT);
	assert_null(found);
}

static void assert_accepted(void)
{
	struct heap_table *found;
	assert_int_equal(index_read(&found), 0);
	heap_table_free(found);
}

static void file_change(const char *file, off_t at, uint8_t bits)
{
	uint8_t byte;
	int fd = open(file, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void what_was_written_is_read_again(void **state)
{
	struct heap_table *found;
	struct heap_scan scan, other;
	const struct heap_rows *rows, *others;
	(void)state;
	assert_int_equal(index_read(&found), 0);
	assert_true(heap_table_is_valid(found));
	assert_int_equal(found->count, table->count);
	assert_true(found->count > 2000);
	assert_int_equal(found->site_count, table->site_count);
	assert_memory_equal(found->sites, table->sites, table->site_count * sizeof(*table->sites));
	assert_memory_equal(found->processes, table->processes, sizeof(*table->processes));
	assert_memory_equal(found->sums.numbers, table->sums.numbers, table->site_count * sizeof(*table->sums.numbers));
	assert_int_equal(found->sums.use_count, table->sums.use_count);
	assert_int_equal(found->peak.bytes, table->peak.bytes);
	assert_int_equal(found->peak.time_ns, table->peak.time_ns);
	assert_int_equal(found->duration_ns, table->duration_ns);
	heap_scan_begin(&scan, table, &HEAP_SCAN_ALL, NULL);
	heap_scan_begin(&other, found, &HEAP_SCAN_ALL, NULL);
	while ((rows = heap_scan_next(&scan))) {
		others = heap_scan_next(&other);
		assert_non_null(others);
		assert_int_equal(others->count, rows->count);
		for (int column = 0; column < PACK_COLUMNS; column++)
			assert_memory_equal(others->columns.numbers[column], rows->columns.numbers[column],
					    rows->count * sizeof(uint64_t));
	}
	assert_null(heap_scan_next(&other));
	heap_scan_end(&scan);
	heap_scan_end(&other);
	assert_false(*found->is_damaged);
	heap_table_free(found);
}

/* A bit of the head, of the arrays, and of a chunk of groups; the last is noticed where it is read. */
static void damage_is_noticed(void **state)
{
	struct heap_index_head head;
	struct heap_table *found;
	struct stat status;
	(void)state;
	int fd = open(index_path, O_RDONLY);
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	fstat(fd, &status);
	close(fd);
	const off_t places[] = {0,
				offsetof(struct heap_index_head, count),
				offsetof(struct heap_index_head, trace.event_count),
				offsetof(struct heap_index_head, checksum),
				(off_t)head.tables_offset,
				(off_t)(head.tables_offset + head.group_count * sizeof(struct heap_group)),
				status.st_size - 1};
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		file_change(index_path, places[i], 4);
		assert_refused();
		file_change(index_path, places[i], 4);
	}
	assert_accepted();
	file_change(index_path, HEAP_INDEX_HEAD_BYTES + 10, 4);
	assert_int_equal(index_read(&found), 0);
	assert_false(heap_table_is_valid(found));
	heap_table_free(found);
	assert_int_equal(truncate(index_path, status.st_size - 1), 0);
	assert_refused();
}

/* Read the columns of all groups. Return whether one is damaged. */
static bool damage_is_seen(const struct heap_table *found, unsigned columns)
{
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	struct heap_scan scan;
	plan.columns = columns;
	*found->is_damaged = false;
	heap_scan_begin(&scan, found, &plan, NULL);
	while (heap_scan_next(&scan))
		;
	heap_scan_end(&scan);
	return *found->is_damaged;
}

/* Columns lie apart: one that is damaged is noticed by those who read it, and the others are not even read. */
static void only_wanted_columns_are_read(void **state)
{
	static const unsigned wanted[] = {PACK_TIMES,       PACK_SIZES,        PACK_SITES,      PACK_END_SITES,
					  PACK_THREADS,     PACK_HEAPS,        PACK_STATES,     PACK_ADDRESSES,
					  PACK_SLACKS,      PACK_STATES,       PACK_EVERYTHING, PACK_PREVIOUS_ONES,
					  PACK_END_THREADS, PACK_BIRTH_POINTS, PACK_POINTS};
	struct heap_table *found;
	unsigned seen = 0, unseen = 0;
	(void)state;
	for (unsigned column = 0; column < PACK_STRIPS; column++) {
		assert_int_equal(index_read(&found), 0);
		const struct heap_strip strip = found->groups.strips[0].of[column];
		assert_true(strip.bytes > 0 || column == PACK_LATE_ENDS);
		if (strip.bytes)
			file_change(index_path, (off_t)(strip.offset + strip.bytes / 2), 4);
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
			bool is_read = column == PACK_LATE_ENDS ? wanted[i] & PACK_ENDINGS : wanted[i] >> column & 1;
			assert_int_equal(damage_is_seen(found, wanted[i]), strip.bytes && is_read);
			seen += is_read;
			unseen += !is_read;
		}
		if (strip.bytes)
			file_change(index_path, (off_t)(strip.offset + strip.bytes / 2), 4);
		heap_table_free(found);
	}
	assert_true(seen > PACK_STRIPS && unseen > seen);
	assert_accepted();
}

static void path_set_time(struct timespec time)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* An index of other events is refused, even if the trace has the size and the time of before. */
static void an_index_of_another_trace_is_not_read(void **state)
{
	struct stat status, other;
	(void)state;
	assert_int_equal(stat(path, &status), 0);
	path_set_time((struct timespec){.tv_sec = 1});
	assert_accepted();
	trace_close(trace);
	trace_write(path, 6000);
	assert_int_equal(trace_open(&trace, path, &diag), 0);
	assert_int_equal(stat(path, &other), 0);
	assert_int_equal(other.st_size, status.st_size);
	path_set_time(status.st_mtim);
	assert_refused();
}

/* An index of another version is made anew: it is not read, whatever else it says. */
static void an_index_of_another_version_is_not_read(void **state)
{
	static const char *const versions[] = {
		HEAP_INDEX_MAGIC_OLDEST, "XHEAPIX5", "XHEAPIX6", "XHEAPIX7", "XHEAPIX8", "XHEAPIX9"};
	struct heap_index_head head;
	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		int fd = open(index_path, O_RDWR);
		assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
		memcpy(head.magic, versions[i], sizeof(head.magic));
		head.checksum = XXH3_64bits(&head, offsetof(struct heap_index_head, checksum));
		assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
		close(fd);
		assert_refused();
	}
	heap_table_free(table);
	assert_int_equal(index_make(index_path), 0);
	assert_accepted();
}

/* The time of an index is the time of its last use. */
static void a_use_is_noted(void **state)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct stat status;
	(void)state;
	assert_int_equal(utimensat(AT_FDCWD, index_path, times, 0), 0);
	assert_accepted();
	assert_int_equal(stat(index_path, &status), 0);
	assert_true(status.st_mtim.tv_sec > 1);
}

static void the_first_good_path_counts(void **state)
{
	const char *nowhere = "no/such/directory/index";
	struct heap_table *found;
	(void)state;
	assert_int_equal(rename(index_path, elsewhere), 0);
	assert_accepted();
	assert_int_equal(symlink(elsewhere, index_path), 0);
	assert_int_equal(unlink(index_path), 0);
	assert_int_equal(heap_index_read(&found, trace, path, &nowhere, 1), -ENOENT);
	/* A link could lead to somebody else's. */
	assert_int_equal(symlink(elsewhere, index_path), 0);
	const char *link = index_path;
	assert_int_equal(heap_index_read(&found, trace, path, &link, 1), -ENOENT);
	assert_int_equal(heap_index_begin(nowhere, &diag), -ENOENT);
}

/* An older one is replaced, and only the user reads it. */
static void an_index_is_written_over_an_older_one(void **state)
{
	struct stat status;
	(void)state;
	heap_table_free(table);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(index_make(index_path), 0);
	assert_int_equal(stat(index_path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_accepted();
}

static void assert_answer(const struct heap_table *of, enum heap_index_answer which, uint64_t key, const char *text)
{
	uint64_t bytes;
	uint8_t *data = heap_index_read_answer(of, which, key, &bytes);
	assert_non_null(data);
	assert_int_equal(bytes, strlen(text));
	assert_memory_equal(data, text, bytes);
	free(data);
}

static bool answer_keep(const struct heap_table *of, enum heap_index_answer which, uint64_t key, const char *text)
{
	return heap_index_keep_answer(of, which, key, (const uint8_t *)text, strlen(text));
}

/* An answer is there under its key, whole, until another one takes its place. */
static void an_index_keeps_an_answer(void **state)
{
	struct heap_table *found;
	struct stat status;
	uint64_t bytes;
	(void)state;
	assert_null(heap_index_read_answer(table, HEAP_ANSWER_PAGE, 1, &bytes));
	assert_int_equal(stat(index_path, &status), 0);
	assert_true(answer_keep(table, HEAP_ANSWER_PAGE, 1, "the first answer"));
	assert_int_equal(index_read(&found), 0);
	assert_null(heap_index_read_answer(found, HEAP_ANSWER_PAGE, 2, &bytes));
	assert_answer(found, HEAP_ANSWER_PAGE, 1, "the first answer");
	file_change(index_path, status.st_size, 1);
	assert_null(heap_index_read_answer(found, HEAP_ANSWER_PAGE, 1, &bytes));
	assert_true(answer_keep(found, HEAP_ANSWER_PAGE, 2, "another"));
	assert_null(heap_index_read_answer(table, HEAP_ANSWER_PAGE, 1, &bytes));
	assert_answer(table, HEAP_ANSWER_PAGE, 2, "another");
	assert_false(*found->is_damaged);
	heap_table_free(found);
	/* Who has no file has no answer. */
	unlink(index_path);
	assert_false(answer_keep(table, HEAP_ANSWER_PAGE, 3, "another"));
}

/* Answers of several kinds grow and shrink, and leave each other alone. */
static void an_index_keeps_answers_of_all_kinds(void **state)
{
	struct heap_table *found;
	struct stat before, after;
	uint64_t bytes;
	(void)state;
	assert_int_equal(stat(index_path, &before), 0);
	assert_true(answer_keep(table, HEAP_ANSWER_PAGE, 1, "a page"));
	assert_null(heap_index_read_answer(table, HEAP_ANSWER_SURVEY, 1, &bytes));
	for (uint64_t round = 0; round < 10; round++) {
		assert_true(answer_keep(table, HEAP_ANSWER_SURVEY, round, round % 2 ? "short" : "a longer survey"));
		assert_answer(table, HEAP_ANSWER_PAGE, 1 + round, round ? "a page of another length" : "a page");
		assert_true(answer_keep(table, HEAP_ANSWER_PAGE, 2 + round, "a page of another length"));
		assert_answer(table, HEAP_ANSWER_SURVEY, round, round % 2 ? "short" : "a longer survey");
	}
	/* They do not move on and on. */
	assert_int_equal(stat(index_path, &after), 0);
	assert_true(after.st_size < before.st_size + 100);
	assert_int_equal(index_read(&found), 0);
	assert_answer(found, HEAP_ANSWER_PAGE, 11, "a page of another length");
	heap_table_free(found);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(only_wanted_columns_are_read),
		TEST(what_was_written_is_read_again),
		TEST(damage_is_noticed),
		TEST(an_index_keeps_an_answer),
		TEST(an_index_keeps_answers_of_all_kinds),
		TEST(an_index_of_another_trace_is_not_read),
		TEST(the_first_good_path_counts),
		TEST(an_index_is_written_over_an_older_one),
		TEST(an_index_of_another_version_is_not_read),
		TEST(a_use_is_noted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
