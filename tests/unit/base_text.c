/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/grid.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/text.h"

static void test_numbers(void **state)
{
	(void)state;
	assert_string_equal(text_count(0).data, "0");
	assert_string_equal(text_count(999).data, "999");
	assert_string_equal(text_count(1234567).data, "1,234,567");
	assert_string_equal(text_count(UINT64_MAX).data, "18,446,744,073,709,551,615");
	assert_string_equal(text_bytes(1023).data, "1023 B");
	assert_string_equal(text_bytes(1024).data, "1.0 KiB");
	assert_string_equal(text_bytes(1048575).data, "1.0 MiB");
	assert_string_equal(text_bytes(UINT64_MAX).data, "16.0 EiB");
	assert_string_equal(text_span(2000000000, 7000000000).data, "from 2.00 s to 7.00 s");
	assert_string_equal(text_span(0, 64746).data, "from 0 ns to 64.7 us");
	assert_string_equal(text_span(7000000012, 7000000034).data, "from 7.000000012s to 7.000000034s");
	assert_string_equal(text_span(1500, 1500).data, "from 1.50 us to 1.50 us");
	assert_string_equal(text_span(0, INT64_MAX).data, "from 0 ns to 292 years 171 days");
	/* For the bounds' digits there is no room. */
	assert_string_equal(text_span(INT64_MAX - 2, INT64_MAX).data, "from 292 years 171 days to 292 years 171 days");
	assert_string_equal(text_microseconds(0).data, "0.0");
	assert_string_equal(text_microseconds(1234500).data, "1234.5");
	assert_string_equal(text_microseconds(-1).data, "-0.001");
	assert_string_equal(text_microseconds(INT64_MIN).data, "-9223372036854775.808");
	assert_string_equal(text_duration(17).data, "17 ns");
	assert_string_equal(text_duration(1230).data, "1.23 us");
	assert_string_equal(text_duration(45600000).data, "45.6 ms");
	assert_string_equal(text_duration(119999999999).data, "120 s");
	assert_string_equal(text_duration(200000000000).data, "3 min 20 s");
	assert_string_equal(text_duration(7199000000000).data, "119 min 59 s");
	assert_string_equal(text_duration(85320000000000).data, "23 h 42 min");
	assert_string_equal(text_duration(443000000000000).data, "5 days 3 h");
	assert_string_equal(text_duration(INT64_MAX).data, "292 years 171 days");
}

static void test_versions_of_files(void **state)
{
	static const struct {
		const char *name, *without;
	} files[] = {{"web-1.4", "web"},
		     {"web-1.5-rc2+g12", "web"},
		     {"web-v3", "web"},
		     {"web-2", "web"},
		     {"python3.11", "python3"},
		     {"libstdc++.so.6.0.30", "libstdc++.so.6"},
		     {"libc.so.6", "libc.so.6"},
		     {"libfoo-2.31.so", "libfoo-2.31.so"},
		     {"ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2"},
		     {"qemu-x86_64", "qemu-x86_64"},
		     {"a-64bit", "a-64bit"},
		     {"app.py", "app.py"},
		     {"web2", "web2"},
		     {"7z", "7z"},
		     {"-1", "-1"},
		     {"web-", "web-"},
		     {"", ""}};
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_int_equal(text_unversioned_size(files[i].name, strlen(files[i].name)), strlen(files[i].without));
	/* Only so many bytes are the name. */
	assert_int_equal(text_unversioned_size("web-1.4", 4), 4);
	assert_int_equal(text_unversioned_size("lib.so.12", 8), 8);
}

static void test_lists(void **state)
{
	static const char *const words[] = {"one", "two", "three"};
	char text[32], small[8];
	(void)state;
	text_join(text, sizeof(text), words, 3);
	assert_string_equal(text, "one, two, three");
	text_join(text, sizeof(text), words, 1);
	assert_string_equal(text, "one");
	text_join(text, sizeof(text), words, 0);
	assert_string_equal(text, "");
	text_join(small, sizeof(small), words, 3);
	assert_string_equal(small, "one, tw");
}

static void test_parsing(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{"0", 0},        {"1.5", 1500}, {"2s", 2000000000}, {".5ms", 500000},
		{"10US", 10000}, {"7ns", 7},    {"0.0015", 1},      {"3.", 3000},
	};
	static const struct {
		int64_t ns;
		const char *text;
	} exact[] = {{0, "0"},
		     {7, "7ns"},
		     {10000, "10us"},
		     {163229233, "163.229233ms"},
		     {17654743058, "17.654743058s"},
		     {20000000000, "20s"},
		     {1000000001, "1.000000001s"},
		     {INT64_MAX / 2, "4611686018.427387903s"}};
	static const char *const bad[] = {"", "s", "-1", "1h", "1 s", ".", "99999999999999999999", "9999999999999999s"};
	static const struct {
		const char *text;
		double milliseconds;
	} lengths[] = {{"0", 0},        {"1001ms", 1001},  {"2", 2000},       {"90s", 90000},
		       {"1.5m", 90000}, {"15min", 900000}, {"24h", 86400000}, {"7d", 604800000}};
	static const char *const no_lengths[] = {"", "h", "-1s", "1 h", "1w", "nan", "inf", "infs", "200000d", "1e300"};
	double milliseconds;
	int64_t ns;
	uint64_t count;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(text_parse_time(good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(exact) / sizeof(*exact); i++) {
		assert_string_equal(text_exact_time(exact[i].ns).data, exact[i].text);
		assert_true(text_parse_time(exact[i].text, &ns));
		assert_int_equal(ns, exact[i].ns);
	}
	assert_string_equal(text_exact_time(INT64_MIN).data, "-9223372036.854775808s");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(text_parse_time(bad[i], &ns));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		assert_true(text_parse_duration(lengths[i].text, &milliseconds));
		assert_true(milliseconds == lengths[i].milliseconds);
	}
	for (size_t i = 0; i < sizeof(no_lengths) / sizeof(*no_lengths); i++)
		assert_false(text_parse_duration(no_lengths[i], &milliseconds));
	assert_true(text_parse_count("18446744073709551615", &count));
	assert_false(text_parse_count("18446744073709551616", &count));
	assert_false(text_parse_count("-1", &count));
	assert_false(text_parse_count("1x", &count));
	assert_string_equal(text_file_name("/lib/libc.so.6"), "libc.so.6");
	assert_string_equal(text_file_name("[vdso]"), "[vdso]");
}

static struct sink *write_begin(void)
{
	static struct sink sink;
	sink_to_memory(&sink);
	return &sink;
}

static void assert_written(struct sink *out, const char *expected)
{
	char *written = sink_take(out, NULL);
	assert_string_equal(written, expected);
	free(written);
}

static void test_json(void **state)
{
	static const uint8_t bytes[] = {0, 0xfe};
	struct json json = {.out = write_begin(), .line_depth = 1};
	(void)state;
	json_begin_object(&json, NULL);
	json_text(&json, "bad", "a\xff\xc3\xa9\xed\xa0\x80\"\\\n\xc2\x9b\xe2\x80\xae");
	json_time(&json, "t", 1500);
	json_begin_array(&json, "list");
	json_count(&json, NULL, 1);
	json_begin_object(&json, NULL);
	json_bool(&json, "no", false);
	json_address(&json, "at", 255);
	json_bytes(&json, "id", bytes, 2);
	json_end_object(&json);
	json_end_array(&json);
	json_begin_array(&json, "empty");
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
	assert_written(
		json.out,
		"{\n \"bad\": \"a\\ufffd\xc3\xa9\\ufffd\\ufffd\\ufffd\\\"\\\\\\u000a\\u009b\\u202e\",\n \"t\": 1.5,\n"
		" \"list\": [1, {\"no\": false, \"at\": \"0xff\", \"id\": \"00fe\"}],\n \"empty\": []\n}\n");
}

static void test_grid(void **state)
{
	static const char *const titles[] = {">n", "name", ">x"};
	struct grid grid = {0};
	(void)state;
	grid_columns(&grid, 3, titles);
	grid_row(&grid);
	grid_cell(&grid, "100");
	grid_cell(&grid, "\xc3\xa9");
	grid_cell(&grid, "7");
	grid_detail(&grid, "    more\n");
	grid_row(&grid);
	grid_cell(&grid, "5");
	struct sink *out = write_begin();
	grid_print(&grid, out, 1);
	grid_fini(&grid);
	assert_written(out, "   n  name  x\n 100  \xc3\xa9     7\n    more\n   5\n");
	out = write_begin();
	csv_field(out, "plain");
	csv_field(out, "a,\"b\"");
	assert_written(out, "plain\"a,\"\"b\"\"\"");
}

static void test_intern(void **state)
{
	struct intern intern = {0};
	char text[16];
	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 5000; i++) {
			snprintf(text, sizeof(text), "%u", i);
			assert_int_equal(intern_text(&intern, text), i);
		}
	assert_int_equal(intern.count, 5000);
	assert_string_equal(intern.items[4711].data, "4711");
	assert_int_equal(intern_bytes(&intern, "1\0", 2), 5000);
	intern_fini(&intern);
}

static void test_map(void **state)
{
	struct map map = {0};
	bool added;
	(void)state;
	assert_null(map_find(&map, 0));
	for (uint64_t i = 0; i < 100000; i++)
		*map_add(&map, i << 33 | i % 7, &added) = (uint32_t)i;
	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(*map_find(&map, i << 33 | i % 7), i);
	map_add(&map, 0, &added);
	assert_false(added);
	assert_null(map_find(&map, 12345));
	assert_int_equal(map.count, 100000);
	map_fini(&map);
}

static void test_what_steers_a_terminal_is_not_shown(void **state)
{
	static const struct {
		const char *given, *shown;
	} cases[] = {
		{"plain \xc3\xa4 \xe2\x94\x82 \xf0\x9f\x98\x80", "plain \xc3\xa4 \xe2\x94\x82 \xf0\x9f\x98\x80"},
		{"\x1b[31m", "?[31m"},
		{"a\nb\tc\r\x7f", "a?b?c??"},
		{"\xc2\x9b"
		 "5m",
		 "??5m"},
		{"\x9b"
		 "5m",
		 "?5m"},
		{"\xe2\x80\xae"
		 "a\xe2\x81\xa6",
		 "???a???"},
		{"\xe2\x80\xa8", "???"},
		{"\xed\xa0\x80", "???"},
		{"\xc0\x80", "??"},
		{"\xe2\x80", "??"},
		{"\xff", "?"},
		{"", ""},
		{"\xc2\xa0", "\xc2\xa0"},
		{"\xd8\x9c", "??"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", cases[i].given);
		const char *shown = text_shown(cases[i].given);
		assert_string_equal(shown, cases[i].shown);
		/* What is harmless is not copied, and what is not is copied once. */
		assert_true((shown == cases[i].given) == !strcmp(text, cases[i].shown));
		assert_ptr_equal(text_shown(text) == text ? shown : text_shown(text), shown);
		assert_string_equal(text_make_harmless(text), cases[i].shown);
	}
}

/* Each byte, at each place of words that are looked at at once. */
static void test_what_is_not_shown_is_found_in_long_texts(void **state)
{
	(void)state;
	for (unsigned byte = 1; byte <= UINT8_MAX; byte++)
		for (size_t place = 0; place < 20; place++) {
			char text[] = "a plain text ~ of names";
			text[place] = (char)byte;
			bool is_plain = byte >= ' ' && byte < 0x7f;
			const char *shown = text_shown(text);
			assert_true((shown == text) == is_plain);
			text[place] = is_plain ? text[place] : '?';
			assert_string_equal(shown, text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_versions_of_files),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_parsing),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_grid),
		cmocka_unit_test(test_intern),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_what_steers_a_terminal_is_not_shown),
		cmocka_unit_test(test_what_is_not_shown_is_found_in_long_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
