/* SPDX-License-Identifier: MIT */
/* Sinks: what arrives, when, and what a failed write leaves behind. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/grid.h"
#include "base/json.h"
#include "base/sink.h"
#include "base/style.h"

/* What a function of ours was given, and the call at which it fails. */
struct receiver {
	char text[1 << 16];
	size_t length;
	unsigned calls, fails_at; /* fails_at: counted from 1; 0: never */
	size_t longest;
};

static int receive(void *context, const char *data, size_t size)
{
	struct receiver *receiver = context;
	receiver->calls++;
	receiver->longest = size > receiver->longest ? size : receiver->longest;
	if (receiver->calls == receiver->fails_at)
		return -ENOSPC;
	assert_true(receiver->length + size < sizeof(receiver->text));
	memcpy(receiver->text + receiver->length, data, size);
	receiver->length += size;
	return 0;
}

static struct receiver receiver;

static int begin(void **state)
{
	(void)state;
	memset(&receiver, 0, sizeof(receiver));
	return 0;
}

/* Every way to write, with each length around the buffer's and the one of printf's room. */
static void write_everything(struct sink *sink, char *expected)
{
	static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 16, 100, 510, 511, 512, 513, 2000};
	char piece[2048], *to = expected;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(piece, (int)('a' + i), lengths[i]);
		piece[lengths[i]] = 0;
		sink_text(sink, piece);
		to = stpcpy(to, piece);
		sink_format(sink, "%s|%zu|", piece, i);
		to += sprintf(to, "%s|%zu|", piece, i);
		sink_put(sink, '.');
		to = stpcpy(to, ".");
		sink_bytes(sink, piece, lengths[i] / 2);
		piece[lengths[i] / 2] = 0;
		to = stpcpy(to, piece);
	}
}

static void test_all_arrives(void **state)
{
	static const size_t buffers[] = {0, 1, 2, 8, 511, 512, 4096, 1 << 20};
	static char expected[1 << 16];
	(void)state;
	for (size_t i = 0; i < sizeof(buffers) / sizeof(*buffers); i++) {
		struct sink sink;
		begin(NULL);
		sink_to_function(&sink, receive, &receiver, buffers[i]);
		write_everything(&sink, expected);
		assert_int_equal(sink_end(&sink), 0);
		receiver.text[receiver.length] = 0;
		assert_string_equal(receiver.text, expected);
	}
	assert_int_equal(receiver.calls, 1); /* the last buffer holds all of it */
	struct sink memory;
	size_t length;
	sink_to_memory(&memory);
	write_everything(&memory, expected);
	char *text = sink_take(&memory, &length);
	assert_string_equal(text, expected);
	assert_int_equal(length, strlen(expected));
	free(text);
}

/* A NUL is a byte as any other. */
static void test_bytes(void **state)
{
	struct sink sink;
	size_t length;
	(void)state;
	sink_to_memory(&sink);
	sink_bytes(&sink, "a\0b", 3);
	sink_put(&sink, 0);
	char *text = sink_take(&sink, &length);
	assert_int_equal(length, 4);
	assert_memory_equal(text, "a\0b\0\0", 5);
	free(text);
	sink_to_memory(&sink);
	text = sink_take(&sink, NULL);
	assert_string_equal(text, "");
	free(text);
}

/* A text of pieces that are each written at once: the third one fails. */
static void test_a_failed_write_is_the_last(void **state)
{
	struct sink sink;
	(void)state;
	receiver.fails_at = 3;
	sink_to_function(&sink, receive, &receiver, 0);
	sink_text(&sink, "one ");
	sink_put(&sink, '2');
	assert_int_equal(sink.error, 0);
	sink_format(&sink, "%s", "three");
	assert_int_equal(sink.error, -ENOSPC);
	sink_text(&sink, "four");
	sink_put(&sink, '5');
	sink_format(&sink, "%d", 6);
	sink_bytes(&sink, "seven", 5);
	assert_int_equal(sink_flush(&sink), -ENOSPC);
	assert_int_equal(receiver.calls, 3);
	assert_int_equal(receiver.length, 5);
	assert_memory_equal(receiver.text, "one 2", 5);
	assert_int_equal(sink_end(&sink), -ENOSPC);
	assert_int_equal(sink_end(&sink), 0);
	assert_int_equal(receiver.calls, 3);
}

/* Whichever call of many fails, a writer comes to its end, and nothing arrives behind the failure. */
static void test_writers_end(void **state)
{
	enum { BUFFER = 16, CALLS_MAX = 100 };
	static const char *const titles[] = {">n", "name"};
	unsigned fails_at = 0, calls = 0;
	char whole[4096] = "";
	(void)state;
	do {
		struct sink sink;
		begin(NULL);
		receiver.fails_at = fails_at;
		sink_to_function(&sink, receive, &receiver, BUFFER);
		struct json json = {.out = &sink, .line_depth = 2};
		json_begin_object(&json, NULL);
		json_text(&json, "text", "a \"quoted\" one\n");
		json_begin_array(&json, "list");
		for (uint64_t i = 0; i < 10; i++)
			json_count(&json, NULL, i);
		json_end_array(&json);
		json_end_object(&json);
		json_end(&json);
		struct grid grid = {0};
		grid_columns(&grid, 2, titles);
		grid_row(&grid);
		grid_cell(&grid, "1");
		grid_cell(&grid, "a name");
		grid_detail(&grid, "    more\n");
		grid_print(&grid, &sink, 2);
		grid_fini(&grid);
		csv_field(&sink, "a,\"b\"");
		style_lines(&sink, false, STYLE_HEADING, "one\ntwo");
		assert_int_equal(sink_end(&sink), fails_at ? -ENOSPC : 0);
		if (!fails_at) {
			calls = receiver.calls;
			assert_true(calls > 5 && calls < CALLS_MAX && receiver.longest <= BUFFER);
			memcpy(whole, receiver.text, receiver.length);
		}
		assert_int_equal(receiver.calls, fails_at ? fails_at : calls);
		assert_memory_equal(receiver.text, whole, receiver.length);
	} while (++fails_at <= calls);
}

static void test_large_numbers(void **state)
{
	struct sink sink;
	(void)state;
	for (int is_for_script = 0; is_for_script < 2; is_for_script++) {
		struct json json = {.out = &sink, .is_for_script = is_for_script};
		sink_to_memory(&sink);
		json_begin_array(&json, NULL);
		json_count(&json, NULL, (UINT64_C(1) << 53) - 1);
		json_count(&json, NULL, UINT64_C(1) << 53);
		json_number(&json, NULL, -(INT64_C(1) << 53) + 1);
		json_number(&json, NULL, INT64_MIN);
		json_end_array(&json);
		char *text = sink_take(&sink, NULL);
		assert_string_equal(text, is_for_script ? "[9007199254740991, \"9007199254740992\", -9007199254740991, "
							  "\"-9223372036854775808\"]"
							: "[9007199254740991, 9007199254740992, -9007199254740991, "
							  "-9223372036854775808]");
		free(text);
	}
}

static void test_files(void **state)
{
	static char expected[1 << 16], found[1 << 16];
	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		FILE *file = tmpfile();
		struct sink sink;
		if (kind)
			sink_to_file(&sink, file, 100);
		else
			sink_to_fd(&sink, fileno(file), 100);
		write_everything(&sink, expected);
		assert_int_equal(sink_end(&sink), 0);
		rewind(file);
		found[fread(found, 1, sizeof(found) - 1, file)] = 0;
		assert_string_equal(found, expected);
		fclose(file);
	}
}

/* A full disk, a pipe that nobody reads. */
static void test_errors_of_descriptors(void **state)
{
	struct sink sink;
	int ends[2], full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	(void)state;
	assert_true(full >= 0);
	sink_to_fd(&sink, full, 8);
	sink_text(&sink, "more than the buffer");
	sink_text(&sink, "and more");
	assert_int_equal(sink_end(&sink), -ENOSPC);
	FILE *file = fdopen(full, "w");
	sink_to_file(&sink, file, 0);
	setvbuf(file, NULL, _IONBF, 0);
	sink_text(&sink, "text");
	assert_int_equal(sink_end(&sink), -ENOSPC);
	fclose(file);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	sink_to_fd(&sink, ends[1], 4);
	sink_text(&sink, "12345678");
	assert_int_equal(sink_end(&sink), -EPIPE);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_all_arrives, begin),
		cmocka_unit_test_setup(test_bytes, begin),
		cmocka_unit_test_setup(test_a_failed_write_is_the_last, begin),
		cmocka_unit_test_setup(test_writers_end, begin),
		cmocka_unit_test(test_large_numbers),
		cmocka_unit_test_setup(test_files, begin),
		cmocka_unit_test_setup(test_errors_of_descriptors, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
