/* SPDX-License-Identifier: MIT */
/* The words of filters: from text to a filter and back, each word; and the same filter as a program gives it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api.h"
#include "api/filter_fields.h"
#include "query/filter_words.h"
#include "scene.h"
#include "trace/row_ids.h"

enum { VALUES_MAX = 4 };

/* Values of a word, and how they are written: NULL: as they are. */
static const struct {
	enum filter_word_id word;
	const char *values[VALUES_MAX], *written;
} good[] = {
	{FILTER_WORD_RANGE, {"0", "1.5ms"}, NULL},
	{FILTER_WORD_RANGE, {"10us", "max"}, NULL},
	{FILTER_WORD_RANGE, {"2023/11/14:22:13:20+UTC", "5s"}, NULL},
	{FILTER_WORD_RANGE, {"3E8:1", "0x7D0:2"}, NULL},
	{FILTER_WORD_AT, {"5DC:1"}, NULL},
	{FILTER_WORD_AT, {"1.5ms"}, NULL},
	{FILTER_WORD_AT, {"FFFFFFFFFFFFFFFE:0"}, NULL},
	{FILTER_WORD_LIFETIME, {"0", "100"}, "0.0 100.0"},
	{FILTER_WORD_LIFETIME, {"1ns", "00:00:01.5"}, "0.001 1500000.0"},
	{FILTER_WORD_LIFETIME, {"1ms", "inf"}, "1000.0 max"},
	{FILTER_WORD_SIZE, {"1K", "2M"}, "1024 2097152"},
	{FILTER_WORD_SIZE, {"100", "Infinity"}, "100 max"},
	{FILTER_WORD_SIZE, {"0", "18446744073709551614"}, NULL},
	{FILTER_WORD_REQUIRED, {"app!main", "libc!", "*alloc"}, NULL},
	{FILTER_WORD_REQUIRED_OF_FREE, {"app+0x1000"}, NULL},
	{FILTER_WORD_PIDS, {"1,2", "3"}, "1 2 3"},
	{FILTER_WORD_PIDS, {"4294967295"}, NULL},
	{FILTER_WORD_THREADS, {"7"}, NULL},
	{FILTER_WORD_HEAP, {"0x7f00"}, NULL},
	{FILTER_WORD_INNERMOST, {NULL}, ""},
	{FILTER_WORD_WINDOW, {"aofi", "0", "1s"}, "AOFI 0 1s"},
	{FILTER_WORD_WINDOW, {"AIFI", "1", "max"}, NULL},
	{FILTER_WORD_WINDOW, {"aofi+AIFO", "0", "1s"}, "AIFO+AOFI 0 1s"},
	{FILTER_WORD_WINDOW, {"AOFO+AOFI+AIFO+AIFI", "0", "1s"}, "AIFI+AIFO+AOFI+AOFO 0 1s"},
	{FILTER_WORD_CLOSED, {NULL}, ""},
};

static const struct {
	enum filter_word_id word;
	const char *values[VALUES_MAX], *message;
} bad[] = {
	{FILTER_WORD_RANGE,
	 {"1", "2h"},
	 "\"2h\" is no time: microseconds from the start, or with s, ms, us, ns, a position SEQUENCE:STEP, or "
	 "YYYY/MM/DD:HH:MM:SS"},
	{FILTER_WORD_RANGE, {"2", "1"}, "it ends before it begins"},
	{FILTER_WORD_RANGE, {"20:1", "10:1"}, "it ends before it begins"},
	{FILTER_WORD_AT,
	 {"5DC:"},
	 "\"5DC:\" is no time: microseconds from the start, or with s, ms, us, ns, a position SEQUENCE:STEP, or "
	 "YYYY/MM/DD:HH:MM:SS"},
	{FILTER_WORD_LIFETIME, {"1", "soon"}, "\"soon\" is no time: microseconds, or with s, ms, us, ns"},
	{FILTER_WORD_LIFETIME, {"2us", "1us"}, "it ends before it begins"},
	{FILTER_WORD_SIZE, {"1x", "2"}, "\"1x\" is no size: bytes, or with K, M, G"},
	{FILTER_WORD_SIZE, {"max", "1"}, "it ends before it begins"},
	{FILTER_WORD_REQUIRED,
	 {"good", "!"},
	 "\"!\" is no frame: write image!, image!symbol, symbol or image+0xOFFSET"},
	{FILTER_WORD_REQUIRED_OF_FREE, {""}, "\"\" is no frame: write image!, image!symbol, symbol or image+0xOFFSET"},
	{FILTER_WORD_PIDS, {"1,two"}, "\"two\" is no number"},
	{FILTER_WORD_PIDS, {"4294967296"}, "\"4294967296\" is no number"},
	{FILTER_WORD_THREADS, {"1,"}, "\"\" is no number"},
	{FILTER_WORD_INNERMOST, {"1"}, "it takes no value"},
	{FILTER_WORD_WINDOW,
	 {"AIFX", "1", "2"},
	 "\"AIFX\" is none of AIFI, AIFO, AOFI, AOFO, or some of them with + between them"},
	{FILTER_WORD_WINDOW,
	 {"AIFO+", "1", "2"},
	 "\"AIFO+\" is none of AIFI, AIFO, AOFI, AOFO, or some of them with + between them"},
	{FILTER_WORD_WINDOW,
	 {"+AIFO", "1", "2"},
	 "\"+AIFO\" is none of AIFI, AIFO, AOFI, AOFO, or some of them with + between them"},
	{FILTER_WORD_WINDOW, {"AIFI", "2", "1"}, "it ends before it begins"},
	{FILTER_WORD_CLOSED, {"yes"}, "it takes no value"},
};

static int take_all(struct filter_request *request, const struct filter_word *word, const char *const *values,
		    struct diag *diag)
{
	int error = 0;
	for (unsigned i = 0; i < VALUES_MAX && values[i] && !error; i++)
		error = filter_word_take(request, word, filter_word_is_list(word) ? 0 : i, values[i], diag);
	return error ? error : filter_word_finish(request, word, diag);
}

/* The text as values again: it stays the caller's, cut at the spaces. */
static void split(char *text, const char *values[VALUES_MAX])
{
	unsigned count = 0;
	memset(values, 0, VALUES_MAX * sizeof(*values));
	for (char *save, *at = strtok_r(text, " ", &save); at; at = strtok_r(NULL, " ", &save)) {
		assert_true(count < VALUES_MAX);
		values[count++] = at;
	}
}

static char *written(const struct filter_request *request, const struct filter_word *word)
{
	struct sink out;
	sink_to_memory(&out);
	filter_word_write(request, word, &out);
	return sink_take(&out, NULL);
}

static void assert_same_filter(const struct filter_request *one, const struct filter_request *other)
{
	for (int i = 0; i < FILTER_WORD_COUNT; i++) {
		bool is_asked = filter_word_is_asked(one, &filter_words[i]);
		char *left = written(one, &filter_words[i]), *right = written(other, &filter_words[i]);
		assert_int_equal(filter_word_is_asked(other, &filter_words[i]), is_asked);
		assert_string_equal(left, right);
		free(left);
		free(right);
	}
	assert_memory_equal(&one->filter.size_bytes, &other->filter.size_bytes, sizeof(one->filter.size_bytes));
	assert_memory_equal(&one->filter.lifetime_ns, &other->filter.lifetime_ns, sizeof(one->filter.lifetime_ns));
	assert_int_equal(one->filter.classes, other->filter.classes);
	assert_int_equal(one->filter.nesting, other->filter.nesting);
	assert_int_equal(one->filter.is_closed, other->filter.is_closed);
}

static void test_each_word_both_ways(void **state)
{
	unsigned covered = 0;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		const struct filter_word *word = &filter_words[good[i].word];
		struct filter_request request, again;
		struct diag diag = {""};
		filter_request_init(&request);
		filter_request_init(&again);
		for (int other = 0; other < FILTER_WORD_COUNT; other++)
			assert_false(filter_word_is_asked(&request, &filter_words[other]));
		assert_int_equal(take_all(&request, word, good[i].values, &diag), 0);
		for (int other = 0; other < FILTER_WORD_COUNT; other++)
			assert_int_equal(filter_word_is_asked(&request, &filter_words[other]),
					 other == (int)good[i].word);
		char *text = written(&request, word), joined[256] = "";
		for (int k = 0; k < VALUES_MAX && good[i].values[k]; k++)
			strcat(strcat(joined, k ? " " : ""), good[i].values[k]);
		assert_string_equal(text, good[i].written ? good[i].written : joined);
		const char *values[VALUES_MAX];
		split(text, values);
		assert_int_equal(take_all(&again, word, values, &diag), 0);
		assert_same_filter(&request, &again);
		filter_request_fini(&request);
		filter_request_fini(&again);
		free(text);
		covered |= 1u << good[i].word;
	}
	assert_int_equal(covered, (1u << FILTER_WORD_COUNT) - 1);
}

static void test_bad_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct filter_request request;
		struct diag diag = {""};
		filter_request_init(&request);
		assert_int_equal(take_all(&request, &filter_words[bad[i].word], bad[i].values, &diag), -EINVAL);
		assert_string_equal(diag.text, bad[i].message);
		filter_request_fini(&request);
	}
}

static void test_the_table(void **state)
{
	(void)state;
	for (int i = 0; i < FILTER_WORD_COUNT; i++) {
		assert_int_equal(filter_words[i].id, i);
		assert_true(filter_word_count(&filter_words[i]) < VALUES_MAX);
	}
}

static const struct filter_word *word_of(const char *name)
{
	for (int i = 0; i < FILTER_WORD_COUNT; i++)
		if (!strcmp(name, filter_words[i].name))
			return &filter_words[i];
	return NULL;
}

/* Times by the clock are read when the trace's start is known. */
static void test_moments(void **state)
{
	static const char *const values[] = {"1970/01/01:00:00:02+UTC", "5s", NULL, NULL};
	const struct filter_word *word = &filter_words[FILTER_WORD_RANGE];
	struct filter_request request;
	struct diag diag = {""};
	struct heap_range range = {1, 2};
	(void)state;
	filter_request_init(&request);
	assert_int_equal(filter_word_resolve(&request, word, 0, &range, &diag), 0);
	assert_int_equal(range.from_ns, 1);
	assert_int_equal(take_all(&request, word, values, &diag), 0);
	assert_int_equal(filter_word_resolve(&request, word, 1000000000, &range, &diag), 0);
	assert_int_equal(range.from_ns, 1000000000);
	assert_int_equal(range.to_ns, 5000000000);
	assert_int_equal(filter_word_resolve(&request, word, -10000000000, &range, &diag), -EINVAL);
	assert_string_equal(diag.text, "it ends before it begins");
	filter_request_fini(&request);
}

/* ---- a program's filter ---- */

static const char path[] = "filter_words.xht";
static xheap_trace *trace;

static int begin(void **state)
{
	struct scene scene;
	(void)state;
	scene_open(&scene, path);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 101);
	scene.stack = scene_stack(&scene, 0x1000, 0);
	scene_alloc(&scene, thread, 1000, 0x10000, 100);
	scene_free(&scene, thread, 2000, 0x10000);
	scene_close(&scene);
	return xheap_trace_open(path, NULL, &trace, NULL);
}

static int end(void **state)
{
	(void)state;
	xheap_trace_close(trace);
	unlink(path);
	return 0;
}

/* Take what the report would repeat as words: the same filter. */
static void assert_words(const xheap_filter *given, const char *expected)
{
	struct api_request filter = {.range = {0, 0}};
	struct filter_request words;
	struct diag diag = {""};
	char said[512] = "", *texts[FILTER_WORD_COUNT];
	assert_int_equal(api_request_take(&filter, given, trace, false, &diag), 0);
	filter.request.without_windows = true;
	assert_int_equal(api_request_prepare(&filter, trace, &diag), 0);
	filter_request_init(&words);
	for (size_t i = 0; i < filter.asked.note_count; i++) {
		const struct filter_note *note = &filter.asked.notes[i];
		const char *values[VALUES_MAX];
		strcat(strcat(strcat(strcat(said, "-"), note->name), *note->text ? " " : ""), note->text);
		strcat(said, i + 1 < filter.asked.note_count ? " " : "");
		split(texts[i] = strdup(note->text), values);
		assert_int_equal(take_all(&words, word_of(note->name), values, &diag), 0);
	}
	assert_string_equal(said, expected);
	assert_memory_equal(&words.filter.size_bytes, &filter.asked.filter.size_bytes, sizeof(struct heap_bounds));
	assert_memory_equal(&words.filter.lifetime_ns, &filter.asked.filter.lifetime_ns, sizeof(struct heap_bounds));
	assert_int_equal(words.filter.classes, filter.asked.filter.classes);
	assert_int_equal(words.filter.is_closed, filter.asked.filter.is_closed);
	assert_int_equal(words.filter.pid_count, filter.asked.filter.pid_count);
	assert_int_equal(words.filter.tid_count, filter.asked.filter.tid_count);
	assert_int_equal(words.filter.required.count, filter.asked.filter.required.count);
	assert_int_equal(words.filter.required_of_free.count, filter.asked.filter.required_of_free.count);
	struct heap_range window = {0, 0};
	assert_int_equal(filter_word_resolve(&words, &filter_words[FILTER_WORD_WINDOW], 0, &window, &diag), 0);
	if (words.filter.classes)
		assert_memory_equal(&window, &filter.asked.filter.window, sizeof(window));
	filter_request_fini(&words);
	for (size_t i = 0; i < filter.asked.note_count; i++)
		free(texts[i]);
	api_request_fini(&filter);
}

static void test_filters_of_programs(void **state)
{
	static const uint32_t pids[] = {100}, tids[] = {101};
	static const char *const heaps[] = {"arena"}, *const frames[] = {"app+0x1000", "libc!"};
	xheap_filter given;
	(void)state;
	xheap_filter_init(&given, sizeof(given));
	assert_words(NULL, "");
	assert_words(&given, "");
	given.lifetime_from_ns = 500;
	assert_words(&given, "-lifetime 0.5 max");
	given.live_at = "5DC:0";
	given.size_from = 1;
	given.size_to = 1000;
	given.lifetime_to_ns = 2000000;
	given.is_closed = 1;
	given.window_class = XHEAP_AIFI;
	given.window_from_ns = 0;
	given.window_to_ns = 2500;
	given.pids = pids;
	given.tids = tids;
	given.pid_count = given.tid_count = given.heap_count = 1;
	given.heaps = heaps;
	given.require_frames = given.require_free_frames = frames;
	given.require_frame_count = 2;
	given.require_free_frame_count = 1;
	assert_words(
		&given,
		"-size 1 1000 -lifetime 0.5 2000.0 -pids 100 -threads 101 -heap arena -at 5DC:0 -window AIFI 0.0 2.5 "
		"-closed -requireFrames app+0x1000 libc! -requireFreeFrames app+0x1000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_word_both_ways),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_the_table),
		cmocka_unit_test(test_moments),
		cmocka_unit_test_setup_teardown(test_filters_of_programs, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
