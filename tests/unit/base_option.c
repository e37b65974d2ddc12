/* SPDX-License-Identifier: MIT */
/* Rows of options: values of each type, what is refused and how, choices, names and the nearest name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/option.h"
#include "base/option_text.h"
#include "session/control/option_rows.h"
#include "session/control/options.h"

enum { SHAPE_ROUND = 1, SHAPE_SQUARE = 2, SHAPE_ALL = 3 };

struct values {
	bool is_on, is_off;
	uint32_t number, small, most, time_ms, shape, shapes, mode;
	uint64_t size, large;
	const char *text;
	struct option_pids pids, targets;
	unsigned parsed;
};

static const struct option_choice shapes[] = {{"round", "circle", SHAPE_ROUND, NULL},
					      {"square", "", SHAPE_SQUARE, NULL},
					      {"none", NULL, 0, NULL},
					      {"all", NULL, SHAPE_ALL, NULL},
					      {NULL, NULL, 0, NULL}};

static int parse_twice(void *context, const char *word, struct diag *why)
{
	struct values *values = context;
	values->parsed += word ? 100 : 1;
	return word && !strcmp(word, "bad") ? diag_fail(why, EINVAL, "never bad") : 0;
}

#define AT(member) OPTION_AT(struct values, member)
static const struct option rows[] = {
	{.type = VALUE_TITLE, .help = "Rows:"},
	{"on", .type = VALUE_ON, AT(is_on), .key = "on"},
	{"no-off", .type = VALUE_OFF, AT(is_off), .key = "off"},
	{"number", .type = VALUE_NUMBER, AT(number), .value = "N", .initial = 7},
	{"small", .type = VALUE_COUNT, AT(small), .value = "N", .least = 1, .most = 8192, .initial = 8192},
	{"most", .type = VALUE_SIZE, AT(most), .value = "SIZE"},
	{"size", .others = "bytes octets", .letter = 's', .type = VALUE_SIZE, AT(size), .value = "SIZE", .least = 65536,
	 .most = 1 << 20, .initial = 65536},
	{"large", .type = VALUE_SIZE, AT(large), .value = "SIZE"},
	{"time", .type = VALUE_DURATION, AT(time_ms), .value = "TIME", .least = 10, .most = 60000, .initial = 1500},
	{"shape", .type = VALUE_CHOICE, AT(shape), .value = "SHAPE", .choices = shapes, .initial = SHAPE_ROUND},
	{"shapes", .type = VALUE_SET, AT(shapes), .value = "SHAPES", .choices = shapes, .initial = SHAPE_ALL},
	{"mode", .type = VALUE_PERMISSIONS, AT(mode), .value = "MODE", .initial = 0600},
	{"pid", .letter = 'p', .type = VALUE_PIDS, AT(pids), .value = "PID"},
	{"target", .type = VALUE_PIDS, AT(targets), .value = "PID", .least = 1},
	{"text", .type = VALUE_TEXT, AT(text), .value = "TEXT"},
	{"twice", .letter = 't', .type = VALUE_PARSED, .parse = parse_twice},
	{"parsed", .type = VALUE_PARSED, .parse = parse_twice, .value = "WORD"},
	{NULL, .type = VALUE_ON, AT(is_on), .key = "hidden"},
	{.type = VALUE_END},
};
static const struct option more_rows[] = {{"timing", .type = VALUE_ON, AT(is_on)}, {.type = VALUE_END}};
static const struct option_group groups[] = {{rows, 0, false}, {more_rows, 0, false}, {NULL, 0, false}};

static const struct option *row_of(const char *name)
{
	const struct option_group *group;
	const struct option *option = NULL;
	assert_int_equal(options_find(groups, name, strlen(name), false, &group, &option), 1);
	return option;
}

static struct values initial(void)
{
	struct values values;
	memset(&values, 0, sizeof(values));
	options_initialize(rows, &values);
	return values;
}

static void stores(struct values *values, const char *name, const char *word)
{
	struct diag why = {""};
	assert_int_equal(option_store(row_of(name), values, word, &why), 0);
	assert_string_equal(why.text, "");
}

/* The reason is the whole text, and nothing but lists is changed. */
static void refuses(const char *name, const char *word, const char *reason)
{
	struct values values = initial(), before = values;
	struct diag why = {""};
	const struct option *row = row_of(name);
	assert_true(option_store(row, &values, word, &why) < 0);
	assert_string_equal(why.text, reason);
	assert_true(row->type == VALUE_PIDS || option_is_same(row, &values, &before));
}

static void numbers(void **state)
{
	(void)state;
	struct values values = initial();
	assert_true(values.number == 7 && values.small == 8192 && values.size == 65536 && values.time_ms == 1500);
	stores(&values, "number", "0");
	assert_int_equal(values.number, 0);
	stores(&values, "number", "4294967295");
	assert_int_equal(values.number, UINT32_MAX);
	stores(&values, "small", "8K");
	assert_int_equal(values.small, 8192);
	stores(&values, "small", "1");
	assert_int_equal(values.small, 1);
	stores(&values, "size", "1M");
	assert_int_equal(values.size, 1 << 20);
	stores(&values, "size", "65536");
	assert_int_equal(values.size, 65536);
	stores(&values, "large", "18446744073709551615");
	assert_true(values.large == UINT64_MAX);
	stores(&values, "most", "4095M");
	assert_int_equal(values.most, 4095u << 20);
	refuses("number", "1K", "not a number");
	refuses("number", "", "not a number");
	refuses("number", "-1", "not a number");
	refuses("number", "4294967296", "too large");
	refuses("number", "99999999999999999999999", "not a number");
	refuses("small", "0", "from 1 to 8192");
	refuses("small", "8193", "from 1 to 8192");
	refuses("small", "9K", "from 1 to 8192");
	refuses("small", "x", "not a number; from 1 to 8192");
	refuses("size", "3", "from 64K to 1M");
	refuses("size", "1048577", "from 64K to 1M");
	refuses("size", "16E", "not a size such as 512K or 1M; from 64K to 1M");
	refuses("size", "17179869184G", "not a size such as 512K or 1M; from 64K to 1M");
	refuses("most", "4G", "too large");
	refuses("most", "-1", "not a size such as 512K or 1M");
}

static void durations(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		uint32_t time_ms;
	} good[] = {{"10ms", 10},  {"60", 60000},  {"60s", 60000}, {"1.5", 1500},
		    {"0.05s", 50}, {"1e1", 10000}, {"1m", 60000},  {"0.5min", 30000}};
	static const char *const bad[] = {"", "x", "1w", "s", "-1s", "nan", "1 s", "1e9", "12d", "inf"};
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct values values = initial();
		stores(&values, "time", good[i].word);
		assert_int_equal(values.time_ms, good[i].time_ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses("time", bad[i], "not a time such as 10s or 500ms; from 10ms to 60s");
	refuses("time", "9ms", "from 10ms to 60s");
	refuses("time", "60001ms", "from 10ms to 60s");
	refuses("time", "1h", "from 10ms to 60s");
	refuses("time", "0", "from 10ms to 60s");
}

static void choices(void **state)
{
	(void)state;
	struct values values = initial();
	assert_int_equal(values.shape, SHAPE_ROUND);
	assert_int_equal(values.shapes, SHAPE_ALL);
	stores(&values, "shape", "SQUARE");
	assert_int_equal(values.shape, SHAPE_SQUARE);
	stores(&values, "shape", "Circle");
	assert_int_equal(values.shape, SHAPE_ROUND);
	stores(&values, "shapes", "square+ROUND");
	assert_int_equal(values.shapes, SHAPE_ALL);
	stores(&values, "shapes", "none,square");
	assert_int_equal(values.shapes, SHAPE_SQUARE);
	stores(&values, "shapes", "round+");
	assert_int_equal(values.shapes, SHAPE_ROUND);
	stores(&values, "shapes", "none");
	assert_int_equal(values.shapes, 0);
	refuses("shape", "", "round, square, none or all");
	refuses("shape", "squar", "round, square, none or all");
	refuses("shape", "round+square", "round, square, none or all");
	refuses("shapes", "round+x", "not a list joined by +; any of round, square, none or all");
	refuses("shapes", "round square", "not a list joined by +; any of round, square, none or all");
	char longest[200];
	memset(longest, 'r', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	refuses("shapes", longest, "not a list joined by +; any of round, square, none or all");
}

static void permissions(void **state)
{
	(void)state;
	struct values values = initial();
	stores(&values, "mode", "0660");
	assert_int_equal(values.mode, 0660);
	static const char *const bad[] = {
		"", "400", "777", "1600", "rw", "-600", "0x180", "668", "77777777777777777777777600"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses("mode", bad[i], "not an octal mode; from 600 to 666");
}

static void pids(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"", "x", "1,", ",1", "1,,2", "-5", "99999999999", "1 2", "99999999999999999999"};
	struct values values = initial();
	stores(&values, "pid", "1,22");
	stores(&values, "pid", "333");
	assert_true(values.pids.count == 3 && values.pids.items[0] == 1 && values.pids.items[1] == 22 &&
		    values.pids.items[2] == 333);
	assert_true(values.pids.is_given && !values.pids.has_zero && !values.targets.is_given);
	stores(&values, "pid", "0");
	assert_true(values.pids.count == 3 && values.pids.has_zero);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses("pid", bad[i], "not a process's number, or several with commas between them");
	refuses("target", "0", "not a process's number, or several with commas between them");
	values = initial();
	for (int i = 0; i < OPTION_PIDS_MAX; i++)
		stores(&values, "pid", "5");
	struct diag why = {""};
	assert_true(option_store(row_of("pid"), &values, "6", &why) < 0 && strstr(why.text, "more than 256"));
	assert_int_equal(values.pids.count, OPTION_PIDS_MAX);
}

static void others(void **state)
{
	(void)state;
	struct values values = initial();
	assert_true(!values.is_on && values.is_off);
	assert_false(option_has_value(row_of("on")) || option_has_value(row_of("twice")));
	assert_true(option_has_value(row_of("parsed")) && option_has_value(row_of("text")));
	stores(&values, "on", NULL);
	stores(&values, "no-off", NULL);
	assert_true(values.is_on && !values.is_off);
	stores(&values, "text", "");
	assert_string_equal(values.text, "");
	stores(&values, "twice", NULL);
	stores(&values, "parsed", "good");
	assert_int_equal(values.parsed, 101);
	struct diag why = {""};
	assert_true(option_store(row_of("parsed"), &values, "bad", &why) < 0);
	assert_string_equal(why.text, "never bad");
}

static void is_text(const char *name, const struct values *values, const char *text, const char *word)
{
	char written[100];
	option_text(row_of(name), values, written, sizeof(written));
	assert_string_equal(written, text);
	option_word(row_of(name), values, written, sizeof(written));
	assert_string_equal(written, word);
}

static void texts(void **state)
{
	(void)state;
	struct values values = initial();
	char small[6];
	is_text("on", &values, "no", "no");
	is_text("no-off", &values, "yes", "yes");
	is_text("size", &values, "65536", "65536");
	is_text("time", &values, "1500", "1500ms");
	is_text("shape", &values, "round", "round");
	is_text("shapes", &values, "round square", "round+square");
	is_text("mode", &values, "600", "600");
	values.shapes = 0;
	values.time_ms = 3000;
	values.text = "text";
	is_text("shapes", &values, "", "none");
	is_text("time", &values, "3000", "3s");
	is_text("text", &values, "text", "text");
	values.shapes = SHAPE_ALL;
	option_text(row_of("shapes"), &values, small, sizeof(small));
	assert_string_equal(small, "round");
}

static void is_help(const char *name, const char *expected)
{
	char text[200];
	option_help_text(row_of(name), text, sizeof(text));
	assert_string_equal(text, expected);
}

static void helps(void **state)
{
	(void)state;
	is_help("on", "");
	is_help("number", " (default 7)");
	is_help("small", " (1 to 8192; default 8192)");
	is_help("size", " (64K to 1M; default 64K)");
	is_help("large", "");
	is_help("time", " (10ms to 60s; default 1500ms)");
	is_help("shape", ": round (default), square, none or all");
	is_help("shapes", ": round, square, none or all (default)");
	is_help("mode", " (600 to 666; default 600)");
	is_help("pid", "");
}

static unsigned count_of(const char *name, bool is_prefix, const char *expected)
{
	const struct option_group *group;
	const struct option *option = NULL;
	unsigned count = options_find(groups, name, strlen(name), is_prefix, &group, &option);
	if (count)
		assert_string_equal(option->name, expected);
	return count;
}

static void names(void **state)
{
	(void)state;
	assert_int_equal(count_of("SIZE", false, "size"), 1);
	assert_int_equal(count_of("octets", false, "size"), 1);
	assert_int_equal(count_of("bytes octets", false, ""), 0);
	assert_int_equal(count_of("siz", false, ""), 0);
	assert_int_equal(count_of("siz", true, "size"), 1);
	assert_int_equal(count_of("oct", true, "size"), 1);
	assert_int_equal(count_of("sh", true, "shape"), 2);
	assert_int_equal(count_of("shape", true, "shape"), 1);
	assert_int_equal(count_of("ti", true, "time"), 2);
	assert_int_equal(count_of("timi", true, "timing"), 1);
	assert_int_equal(count_of("", true, ""), 0);
	assert_int_equal(count_of("sized", true, ""), 0);
	const struct option_group *group;
	assert_ptr_equal(options_find_letter(groups, 's', &group), row_of("size"));
	assert_null(options_find_letter(groups, 'S', &group));
	assert_null(options_find_letter(groups, 0, &group));
	assert_string_equal(options_nearest(groups, "siez", 4), "size");
	assert_string_equal(options_nearest(groups, "timming=3", 7), "timing");
	assert_string_equal(options_nearest(groups, "PARSEDD", 7), "parsed");
	assert_null(options_nearest(groups, "xyzzy", 5));
	assert_null(options_nearest(groups, "", 0));
}

/* ---- the options of sessions ---- */

struct line {
	const char *words[40];
	unsigned count;
};

static void line_add(void *cookie, const char *word)
{
	struct line *line = cookie;
	assert_true(line->count < 40);
	line->words[line->count++] = strdup(word);
}

static void key_add(void *cookie, const char *key, const char *text)
{
	struct line *line = cookie;
	line_add(line, key);
	line_add(line, text);
}

/* What the library writes as words is what a command line reads. */
static void session_words(void **state)
{
	(void)state;
	static const struct option_group session_groups[] = {{session_option_rows, 0, false}, {NULL, 0, false}};
	struct session_options options, read;
	struct line line = {.count = 0};
	session_options_init(&options);
	session_options_each_word(&options, line_add, &line);
	assert_int_equal(line.count, 0);
	options.stack_kinds = 0;
	options.buffer_size = 131072;
	options.buffer_min = 3;
	options.wait_limit_ms = 1234;
	options.on_full_wait = options.with_duration = options.follow = false;
	options.file_mode = SESSION_FILE_KEEP;
	options.clock = SESSION_CLOCK_MONOTONIC;
	options.permissions = 0640;
	options.sample_bytes = 5;
	session_options_each_word(&options, line_add, &line);
	session_options_init(&read);
	for (unsigned i = 0; i < line.count;) {
		const struct option_group *group;
		const struct option *option;
		const char *name = line.words[i++] + 2;
		struct diag why = {""};
		assert_int_equal(options_find(session_groups, name, strlen(name), false, &group, &option), 1);
		assert_int_equal(option_store(option, &read, option_has_value(option) ? line.words[i++] : NULL, &why),
				 0);
	}
	for (const struct option *row = session_option_rows; row->type != VALUE_END; row++)
		assert_true(option_is_same(row, &options, &read));
	for (unsigned i = 0; i < line.count; i++)
		free((char *)line.words[i]);
}

static void session_keys(void **state)
{
	(void)state;
	struct session_options options;
	struct line line = {.count = 0};
	const char *sample = NULL, *least = NULL;
	session_options_init(&options);
	options.command = "cc -c x.c";
	options.on_full_wait = false;
	session_options_each_key(&options, key_add, &line);
	for (unsigned i = 0; i < line.count; i += 2) {
		sample = strcmp(line.words[i], "sample") ? sample : line.words[i + 1];
		least = strcmp(line.words[i], "min-buffers") ? least : line.words[i + 1];
	}
	assert_null(sample);
	assert_string_equal(least, "32");
	assert_string_equal(line.words[line.count - 1], "cc -c x.c");
	for (unsigned i = 0; i < line.count; i++)
		free((char *)line.words[i]);
}

/* What a row says fits together: it has a place, a help, and an initial value that it would take. */
static void session_rows(void **state)
{
	(void)state;
	struct session_options options;
	session_options_init(&options);
	for (const struct option *row = session_option_rows; row->type != VALUE_END; row++) {
		char word[160];
		struct diag why = {""};
		assert_true(row->type == VALUE_TITLE || row->key || row->help);
		assert_true(!option_has_number(row) || row->size);
		if (!row->name || !row->initial || !option_has_value(row))
			continue;
		option_word(row, &options, word, sizeof(word));
		assert_int_equal(option_store(row, &options, word, &why), 0);
		assert_int_equal(option_number(row, &options), row->initial);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),       cmocka_unit_test(durations),    cmocka_unit_test(choices),
		cmocka_unit_test(permissions),   cmocka_unit_test(pids),         cmocka_unit_test(others),
		cmocka_unit_test(texts),         cmocka_unit_test(helps),        cmocka_unit_test(names),
		cmocka_unit_test(session_words), cmocka_unit_test(session_keys), cmocka_unit_test(session_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
