/* SPDX-License-Identifier: MIT */
/* Expressions and their values; what is refused, where; what a query may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dx/command.h"
#include "dx/model/objects.h"
#include "scene.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { MEMORY_BYTES = 1 << 20, EVENTS = 60000, ANSWER_MAX = 1 << 12 };

static struct trace *trace;
static char answer[ANSWER_MAX];

/* Many calls: sizes 1 to 100, each freed at once. */
static int open_trace(void **state)
{
	struct scene scene;
	char path[] = "dx.XXXXXX";
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	scene_open(&scene, path);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0), thread = scene_thread(&scene, process, 100);
	for (int i = 0; i < EVENTS / 2; i++) {
		scene_alloc(&scene, thread, 10 * i + 10, 0x10000 + 16 * (uint64_t)i, (uint64_t)(i % 100 + 1));
		scene_free(&scene, thread, 10 * i + 15, 0x10000 + 16 * (uint64_t)i);
	}
	scene_end(&scene, process, 10 * EVENTS, TRACE_END_EXIT, 0);
	trace = scene_read(&scene, path);
	unlink(path);
	close(fd);
	return 0;
}

static int close_trace(void **state)
{
	(void)state;
	trace_close(trace);
	return 0;
}

/* The answer's text, or the refusal's, is in `answer`. */
static enum dx_status ask_in(struct dx_session *session, const char *text)
{
	struct dx_command command = {.memory_bytes = MEMORY_BYTES};
	struct diag diag = {""};
	struct sink out;
	size_t length;
	sink_to_memory(&out);
	assert_int_equal(dx_command_parse(text, &command, &diag), 0);
	enum dx_status status = dx_command_run(session, &command, &out, &out);
	char *taken = sink_take(&out, &length);
	snprintf(answer, sizeof(answer), "%.*s", (int)length, taken);
	free(taken);
	return status;
}

static enum dx_status ask(const char *text)
{
	struct dx_session session = {.trace = trace};
	dx_session_init(&session);
	enum dx_status status = ask_in(&session, text);
	dx_session_fini(&session);
	return status;
}

/* The value behind the repeated text and its blanks. */
static void answer_is(enum dx_status status, const char *text, const char *value)
{
	char wanted[ANSWER_MAX];
	const char *found = strstr(answer, "                 : ");
	snprintf(wanted, sizeof(wanted), "%s\n", value);
	if (status > DX_FAILED || !found || strcmp(found + 19, wanted) != 0)
		fail_msg("%s is %s, not %s", text, answer, value);
}

static void value_is(const char *text, const char *value)
{
	answer_is(ask(text), text, value);
}

static void value_is_in(struct dx_session *session, const char *text, const char *value)
{
	answer_is(ask_in(session, text), text, value);
}

static void refused_at(const char *text, int column, const char *part)
{
	char wanted[64];
	enum dx_status status = ask(text);
	snprintf(wanted, sizeof(wanted), "column %d: ", column);
	if (status != DX_REFUSED || !strstr(answer, wanted) || !strstr(answer, part))
		fail_msg("%s: %s, not column %d: %s", text, answer, column, part);
}

static void test_numbers(void **state)
{
	(void)state;
	value_is("10", "10");
	value_is("0x10,d", "16");
	value_is("0n10 + 0y101 + 0t17 + 0b11,d", "33");
	value_is("1'000'000,d", "1000000");
	value_is("18446744073709551615", "18446744073709551615");
	value_is("18446744073709551615 + 1", "[error: the result has more than 64 bits]");
	value_is("5 - 10", "-5");
	value_is("-5 / 2", "-2");
	value_is("7 % 0", "[error: division by zero]");
	value_is("1.5 * 2", "3.0");
	value_is("1 << 63", "0x8000000000000000");
	value_is("1 << 64", "[error: a shift is by 0 to 63 bits]");
	value_is("8,o", "010");
	value_is("5,b", "0y101");
	value_is("0x41,c", "0x41 'A'");
}

static void test_operators(void **state)
{
	(void)state;
	value_is("2 + 3 * 4,d", "14");
	value_is("(2 + 3) * 4,d", "20");
	value_is("10 - 4 - 3,d", "3");
	value_is("1 | 2 ^ 3 & 1", "0x3");
	value_is("1 < 2 == true", "true");
	value_is("!1 || 2 && 3", "true");
	value_is("false && 1 / 0 == 0", "false");
	value_is("true ? 1 : 1 / 0", "1");
	value_is("~0", "0xffffffffffffffff");
	value_is("\"a\" + 1 /* one */ + \"b\" // end", "a1b");
	value_is("\"abc\" < \"abd\"", "true");
	value_is("1 == 1.0", "true");
}

static void test_texts(void **state)
{
	(void)state;
	value_is("\"abc\".Length", "0x3");
	value_is("\"abc\".Length()", "0x3");
	value_is("\"abcabc\".LastIndexOf(\"bc\"),d", "4");
	value_is("\"abc\".IndexOf(\"x\")", "-1");
	value_is("\"abc\".Substring(1, 1)", "b");
	value_is("\"abc\".Substring(9) == \"\"", "true");
	value_is("\"a\\tb\\\"\".Replace(\"\\t\", \"-\")", "a-b\"");
	value_is("\"abc\".PadLeft(5) + \"|\"", "  abc|");
	value_is("\"abc\".Remove(1, 1).ToUpper()", "AC");
	value_is("\"a\",s", "\"a\"");
	value_is("(255).ToDisplayString(\"d\")", "255");
	value_is("\"\xc3\xa4\".Substring(1) == \"\"", "true");
}

static void test_positions(void **state)
{
	(void)state;
	value_is("@$create(\"Debugger.Models.TTD.Position\", 0x36B6, 0)", "36B6:0");
	value_is("@$position(\"FAB:17B1\").Steps", "0x17b1");
	value_is("@$position(\"FAB:17B1\") < @$position(\"FAB:17B2\")", "true");
	value_is("@$position(\"1A0:\")", "1A0:0");
	value_is("@$cursession.TTD.Lifetime", "[0:0, FFFFFFFFFFFFFFFE:0]");
	value_is("@$cursession.TTD.Data.Heap()[1].TimeStart", "F:1");
}

static void test_collections(void **state)
{
	(void)state;
	value_is("@$cursession.TTD.Data.Heap().Count(),d", "60000");
	value_is("@$cursession.TTD.Data.Heap().Where(h => h.Size > 50).Count(),d", "15000");
	value_is("@$cursession.TTD.Data.Heap().Sum(h => h.Size),d", "1515000");
	value_is("@$cursession.TTD.Data.Heap().Max(h => h.Size),d", "100");
	value_is("@$cursession.TTD.Data.Heap().Average(h => h.Size)",
		 "50.5\n(Average: of 30,000 values; 30,000 are absent)");
	value_is("@$cursession.TTD.Data.Heap().Take(10).Skip(3).First().Index", "0x3");
	value_is("@$cursession.TTD.Data.Heap().SkipWhile(h => h.Index < 5).TakeWhile(h => h.Index < 9).Count()", "0x4");
	value_is("@$cursession.TTD.Data.Heap().Where(h => h.Size > 3)[6].Size", "0x4");
	value_is("@$cursession.TTD.Data.Heap().Take(300).Select(h => h.Size).Distinct().Count(),d", "100");
	value_is(
		"@$cursession.TTD.Data.Heap().Take(9).OrderByDescending(h => h.Size).ThenBy(h => h.Index).First().Size",
		"0x5");
	value_is("@$cursession.TTD.Data.Heap().Take(9).OrderBy(h => h.Size, (a, b) => a < b ? 1 : a > b ? -1 : "
		 "0).First().Size",
		 "0x5");
	value_is("@$cursession.TTD.Data.Heap().Take(4).Flatten(h => h.Parameters).Count()", "0x4");
	value_is("@$cursession.TTD.Data.Heap().Take(4).Aggregate(0, (sum, h) => sum + h.Index)", "0x6");
	value_is("@$cursession.TTD.Data.Heap().Take(4).Join(@$cursession.TTD.Data.Heap().Take(4), a => a.Address, "
		 "b => b.Address, (a, b) => a.Index).Count()",
		 "0x8");
	value_is("@$cursession.TTD.Data.Heap().Single(h => h.Index == 7).Action", "Free");
	value_is("@$cursession.TTD.Data.Heap().Take(3).Select(h => h.Index).Contains(2)", "true");
	value_is("@$cursession.TTD.Data.Heap().Any(h => h.Size == 101)", "false");
	value_is("@$cursession.TTD.Data.Heap().Last().Index,d", "59999");
	value_is("@$cursession.TTD.Data.Heap().Take(4).Select(h => 1 / h.Index).AllNonError().Count()", "0x3");
	value_is("@$cursession.TTD.Data.Heap().Take(5).Concat(@$cursession.TTD.Data.Heap().Take(5)).Count(),d", "10");
}

/* What a variable has is kept when its query is over: lambdas, names, kept elements, and other variables' values. */
static void test_variables(void **state)
{
	static const char big[] = "@$cursession.TTD.Data.Heap().Where(h => h.Size > 50)";
	struct dx_session session = {.trace = trace};
	char text[256];
	(void)state;
	dx_session_init(&session);
	snprintf(text, sizeof(text), "@$big = %s.Select(h => new { S = h.Size, \"T\" })", big);
	assert_int_equal(ask_in(&session, text), DX_REFUSED);
	snprintf(text, sizeof(text), "@$big = %s.Select(h => new { Bytes = h.Size, Name = \"text\" + h.Size })", big);
	assert_int_equal(ask_in(&session, text), DX_DONE);
	value_is_in(&session, "\"another text, which takes the memory of the first one\".Length", "0x35");
	value_is_in(&session, "@$big.Count(),d", "15000");
	value_is_in(&session, "@$big.First().Bytes", "0x33");
	value_is_in(&session, "@$big.First().Name", "text0x33");
	assert_int_equal(ask_in(&session, "@$more = @$big.Where(x => x.Bytes > 90).Select(x => x.Bytes)"), DX_DONE);
	assert_int_equal(ask_in(&session, "@$big = new { Deep = new { Last = @$big.Last(), At = (x => x) } }"),
			 DX_DONE);
	value_is_in(&session, "@$more.Count(),d", "3000");
	value_is_in(&session, "@$big.Deep.Last.Bytes,d", "100");
	assert_int_equal(
		ask_in(&session, "@$groups = @$cursession.TTD.Data.Heap().Take(40).GroupBy(h => h.Action).First()"),
		DX_DONE);
	value_is_in(&session, "@$groups.Count(),d", "20");
	value_is_in(&session, "@$groups.Key", "Alloc");
	value_is_in(&session, "@$groups.Where(h => h.Index > 20).Count(),d", "9");
	value_is_in(&session, "@$is = (h => h.Size > 50)", "[lambda]");
	value_is_in(&session, "@$cursession.TTD.Data.Heap().Count(@$is),d", "15000");
	/* A value that is replaced or removed while it is used. */
	value_is_in(&session, "@$more.Count(x => (@$more = x) > 0),d", "3000");
	value_is_in(&session, "@$more,d", "100");
	value_is_in(&session, "@$groups.Count(x => @$vars.Remove(\"groups\").ToDisplayString().Length > 1),d", "19");
	assert_int_equal(ask_in(&session, "@$groups"), DX_REFUSED);
	/* More than variables may have: the next query has room again. */
	assert_int_equal(ask_in(&session, "@$cursession.TTD.Data.Heap().Count(h => (@$t = \"text\") == \"\")"),
			 DX_STOPPED);
	assert_non_null(strstr(answer, "user variables take more than"));
	value_is_in(&session, "@$t = \"text\"", "text");
	dx_session_fini(&session);
}

/* Lambdas are called where they stand, as variables and as parameters; variables are members of @$vars. */
static void test_lambdas(void **state)
{
	struct dx_session session = {.trace = trace};
	(void)state;
	dx_session_init(&session);
	value_is("((x, y) => (x + y))(\"Hello\", \"World\")", "HelloWorld");
	value_is("(x => y => x - y)(7)(2)", "5");
	value_is("@$cursession.TTD.Data.Heap().Count(h => (f => f(h.Size))(s => s > 50)),d", "15000");
	value_is_in(&session, "@$add = (x, y) => x + y", "[lambda]");
	value_is_in(&session, "@$add(3, 4)", "7");
	value_is_in(&session, "(@$vars.add)(3, 4)", "7");
	value_is_in(&session, "Debugger.State.UserVariables.add", "[lambda]");
	value_is_in(&session, "@$one = (x => 1 / x)", "[lambda]");
	value_is_in(&session, "@$cursession.TTD.Data.Heap().Take(3).Select(h => @$one(h.Index)).AllNonError().Sum()",
		    "0x1");
	value_is_in(&session, "@$one(@$one(0))", "[error: division by zero]");
	value_is_in(&session, "@$again = (x => x)", "[lambda]");
	value_is_in(&session, "@$again = (x => @$again(x))", "[lambda]");
	assert_int_equal(ask_in(&session, "@$again(1)"), DX_STOPPED);
	assert_non_null(strstr(answer, "nested too deep"));
	assert_int_equal(ask_in(&session, "@$add(1)"), DX_REFUSED);
	assert_non_null(strstr(answer, "the lambda takes 2 arguments, not 1"));
	assert_int_equal(ask_in(&session, "@$cursession.TTD.Data.Heap().Select(@$add)"), DX_FAILED);
	assert_non_null(strstr(answer, "a lambda of one parameter, x => ..., not one of 2"));
	refused_at("(x => x)(1, 2)", 9, "the lambda takes 1 argument, not 2");
	refused_at("5(1)", 2, "only a lambda can be called, not a number");
	refused_at("@$add(1)", 1, "no function or variable @$add");
	refused_at("(h => h.Size)(@$cursession.TTD.Data.Heap()[0].Sise)", 47, "the nearest is Size");
	refused_at("@$vars.add", 8, "no member add");
	dx_session_fini(&session);
}

/* A Free has no Size: what is computed from it is absent, too, so all ways of counting agree. */
static void test_absent(void **state)
{
	(void)state;
	value_is("@$cursession.TTD.Data.Heap().Count(h => h.Size * 2 > 100),d", "15000");
	value_is("@$cursession.TTD.Data.Heap().Where(h => h.Size * 2 > 100).Count(),d", "15000");
	value_is("@$cursession.TTD.Data.Heap().Where(h => -h.Size < -50).Count(),d", "15000");
	value_is("@$cursession.TTD.Data.Heap().Sum(h => h.Size + 1),d", "1545000");
	value_is("@$cursession.TTD.Data.Heap().Max(h => h.Size * 2.0)", "200.0");
	value_is("@$cursession.TTD.Data.Heap().Where(h => h.Size != null).Average(h => h.Size * 2)", "101.0");
	value_is("@$cursession.TTD.Data.Heap().Take(4).Select(h => h.Size << 1).AllNonError().Count()", "0x4");
}

/* A condition that is an error for an element that is asked about: the answer is that error, in a group, too. */
static void test_failed_conditions(void **state)
{
	static const char *const calls[] = {"Count", "Any", "All", "First", "Last", "Single"};
	static const char heap[] = "@$cursession.TTD.Data.Heap().Take(8)";
	char text[256];
	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		snprintf(text, sizeof(text), "%s.%s(h => 1 / (h.Index - 4) > %d)", heap, calls[i], i == 2 ? -2 : 2);
		value_is(text, "[error: division by zero]");
		if (i >= 2 && i != 3)
			continue;
		snprintf(text, sizeof(text), "%s.GroupBy(h => 1).Select(g => g.%s(h => 1 / (h.Index - 4) > 2)).Last()",
			 heap, calls[i]);
		value_is(text, "[error: division by zero]");
	}
	value_is("@$cursession.TTD.Data.Heap().Any(h => 1 / (h.Index - 4) == 0)", "true");
	value_is("@$cursession.TTD.Data.Heap().First(h => 1 / (h.Index - 4) == 0).Index", "0x0");
	value_is("@$cursession.TTD.Data.Heap().All(h => 1 / (h.Index - 4) == 1)", "false");
	value_is("@$cursession.TTD.Data.Heap().FirstNonError(h => 1 / (h.Index - 4) == 1).Index", "0x5");
	value_is("@$cursession.TTD.Data.Heap().Take(8).Select(h => 1 / h.Index).All(x => x >= 0)",
		 "[error: division by zero]");
	value_is("@$cursession.TTD.Data.Heap().Take(8).Select(h => 1 / h.Index).Count(x => x >= 0)", "0x7");
}

/* With a condition, AllNonError asks whether it is true for all but errors. */
static void test_errors_left_out(void **state)
{
	static const char inverse[] = "@$cursession.TTD.Data.Heap().Take(4).Select(h => 6 / h.Index)";
	char text[256];
	(void)state;
	snprintf(text, sizeof(text), "%s.AllNonError(x => x > 1)", inverse);
	value_is(text, "true");
	snprintf(text, sizeof(text), "%s.AllNonError(x => 1 / (x - 6) == 0)", inverse);
	value_is(text, "true");
	snprintf(text, sizeof(text), "%s.AllNonError(x => x > 2)", inverse);
	value_is(text, "false");
	snprintf(text, sizeof(text), "%s.AllNonError().Count()", inverse);
	value_is(text, "0x3");
	refused_at("@$cursession.TTD.Data.Heap().AllNonError(h => h.Size > 1).Where(x => 1)", 59,
		   "a bool has no method Where");
	refused_at("@$cursession.TTD.Data.Heap().AllNonError().Where(h => h.Sise > 1)", 57, "the nearest is Size");
}

/* Loops put values around values: that ends before the stack does. */
static void test_values_in_values(void **state)
{
	(void)state;
	value_is("@$cursession.TTD.Data.Heap().Aggregate((x => x), (f, h) => (y => f)).ToDisplayString().Length > 0",
		 "true");
	value_is("@$cursession.TTD.Data.Heap().Aggregate(0, (a, h) => new { A = a }).ToDisplayString().Length > 0",
		 "true");
	assert_int_equal(
		ask("@$cursession.TTD.Data.Heap().Aggregate(@$cursession.Processes, (s, h) => s.Skip(0)).Count()"),
		DX_FAILED);
	assert_non_null(strstr(answer, "nested too deep"));
}

/* Each action, with its members and without those of others. */
static void test_actions(void **state)
{
	struct trace *whole = trace;
	struct scene scene;
	(void)state;
	scene_open(&scene, "actions.xht");
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0), thread = scene_thread(&scene, process, 100);
	struct writer_events *events = &scene.events[thread];
	scene.function = FUNCTION_HEAP_CREATE_SIZED;
	scene_event(&scene, thread, EVENT_CREATE, 10);
	events->argument[0] = 0x5000;
	events->size[0] = 0x100000;
	events->argument2[0] = 0x2000;
	scene.function = FUNCTION_HEAP_LOCK;
	scene_event(&scene, thread, EVENT_LOCK, 20);
	scene.function = FUNCTION_HEAP_PROTECT;
	scene_event(&scene, thread, EVENT_PROTECT, 30);
	events->argument[2] = 1;
	scene_event(&scene, thread, EVENT_PROTECT, 40);
	events->argument[3] = 3;
	scene.function = FUNCTION_HEAP_UNLOCK;
	scene_event(&scene, thread, EVENT_UNLOCK, 50);
	scene.function = FUNCTION_HEAP_DESTROY;
	scene_event(&scene, thread, EVENT_DESTROY, 60);
	scene_end(&scene, process, 100, TRACE_END_EXIT, 0);
	trace = scene_read(&scene, "actions.xht");
	value_is("@$cursession.TTD.Data.Heap()[0].Action", "Create");
	value_is("@$cursession.TTD.Data.Heap()[0].BaseAddress", "0x5000");
	value_is("@$cursession.TTD.Data.Heap()[0].ReserveSize", "0x100000");
	value_is("@$cursession.TTD.Data.Heap()[0].CommitSize", "0x2000");
	value_is("@$cursession.TTD.Data.Heap()[0].Parameters.Select(p => p).Skip(1).First()", "main arena");
	value_is("@$cursession.TTD.Data.Heap()[0].Parameters.Select(p => p).Skip(2).First()", "0x5000");
	value_is("@$cursession.TTD.Data.Heap()[1].Action + @$cursession.TTD.Data.Heap()[1].Result", "Lock0x1");
	value_is("@$cursession.TTD.Data.Heap()[2].MakeReadOnly", "0x1");
	value_is("@$cursession.TTD.Data.Heap()[3].MakeReadOnly", "0x0");
	value_is("@$cursession.TTD.Data.Heap()[4].Action + @$cursession.TTD.Data.Heap()[4].Result", "Unlock0x1");
	value_is("@$cursession.TTD.Data.Heap()[5].Action + @$cursession.TTD.Data.Heap()[5].Result", "Destroy0x1");
	value_is("@$cursession.TTD.Data.Heap().Count(h => h.CommitSize > 0)", "0x1");
	value_is("@$cursession.TTD.Data.Heap().Count(h => h.Size >= 0 || h.Address >= 0 || h.Flags >= 0)", "0x0");
	trace_close(trace);
	trace = whole;
}

/* Before a command, documents have prompts. */
static void test_prompts(void **state)
{
	static const char *const prompts[] = {"kd> ",       "0: kd> ",   "1: kd>  dx ",  "# 0: kd> dx ",
					      "0:000> DX ", "0:0:000> ", ":000> dx -r0 "};
	(void)state;
	for (size_t i = 0; i < sizeof(prompts) / sizeof(prompts[0]); i++) {
		char text[80];
		snprintf(text, sizeof(text), "%s1 + 1", prompts[i]);
		value_is(text, "2");
	}
	value_is("1 > 0", "true");
	refused_at("k> 1", 1, "no name k");
}

static void test_units(void **state)
{
	(void)state;
	value_is("'a' + 1", "0x62");
	value_is("(() => 5)()", "5");
	value_is("@$cursession->Processes->Count()", "0x1");
	value_is("4K.ToDisplayString(\"d\")", "4096");
	value_is("1MB == 0x100000 && 1MiB == 1MB && 1m == 1MB", "true");
	value_is("2GB - 1T / 512 + 100B == 100", "true");
	value_is("1e3 == 1000 && 25e2 == 2500.0", "true");
}

static void test_refusals(void **state)
{
	(void)state;
	refused_at("1 +", 4, "not complete");
	refused_at("(1", 3, "')' is missing");
	refused_at("1 2", 3, "operator is missing");
	refused_at("\"a", 1, "no closing quote");
	refused_at("\"\xff\"", 1, "not UTF-8");
	refused_at("18446744073709551616", 1, "64 bits");
	refused_at("@$cursession.TTD.Data.Heap().Where(h => h.Sise > 1)", 43, "the nearest is Size");
	refused_at("@$cursession.TTD.Data.Heap().Were(h => 1)", 30, "the nearest is Where");
	refused_at("@$cursession.TTD.Data.Heap().Take()", 30, "Take takes (count)");
	refused_at("@$cursession.TTD.Data.Heap().Take(\"a\")", 35, "must be a whole number");
	refused_at("@$cursession.TTD.Data.Heap().Select(h => h.Action * 2)", 51, "numbers");
	refused_at("@$nobody", 1, "no variable");
	refused_at("1,zz", 3, "no format specifier");
	refused_at("@$cursession.TTD.Data.Heap().Count(h => h.Size = 5)", 48, "== compares");
	refused_at("1 = 1", 3, "== compares");
	refused_at("new { A = 1 and 2 }", 13, "&& joins");
	refused_at("1 or 2", 3, "|| joins");
	refused_at("@$cursession.TTD.Data.Heap().Take(1.5)", 35, "a whole number");
	refused_at("@$cursession.TTD.Data.Heap().Skip(-1)", 35, "from 0 on");
	refused_at("@$cursession.TTD.Data.Heap(5)", 28, "true or false");
	refused_at("@$cursession.TTD.Data.Heap().Max()", 30, "Heap has no order");
	refused_at("@$cursession.TTD.Data.Heap().Min(h => new { A = 1 })", 39, "no order");
	refused_at("@$cursession.TTD.Data.Heap().OrderBy(h => h.Thread)", 43, "Thread has no order");
	refused_at("@$cursession.TTD.Data.Heap().Average()", 30, "a sum is of numbers");
	refused_at("@$cursession.TTD.Data.Heap().Sum(h => h.Action)", 39, "not of a text");
	refused_at("@$cursession.TTD.Data.Heap().Where(h => h.Action)", 41, "neither true nor false");
	refused_at("@$cursession.TTD.Data.Heap().Count(h => h.Size > 5 && !h.Stack)", 56, "neither true nor false");
	refused_at("@$cursession.TTD.Data.Heap().Any(h => h.Frames)", 39, ".Any() says");
	refused_at("@$cursession.TTD.Data.Heap().Count(h => 5 < h.Size < 100)", 52, "a < x && x < b");
	refused_at("@$cursession.TTD.Data.Heap().Count(h => h.Action == \"alloc\")", 53, "the nearest is \"Alloc\"");
	refused_at("@$cursession.TTD.Data.Allocations().Count(b => \"freed\" != b.End)", 48, "the nearest is \"free\"");
	refused_at("'ab'", 1, "one byte");
	refused_at("@rax", 1, "and no registers");
	refused_at("5XB", 2, "no unit of bytes");
	refused_at("16777216T", 1, "64 bits");
}

/* What is not kept takes no memory, however long the trace is; what is kept is counted, and its operator named. */
static void test_memory(void **state)
{
	(void)state;
	assert_int_equal(
		ask("@$cursession.TTD.Data.Heap().Where(h => h.Size > 1000).Select(h => new { A = h.Size }).Count()"),
		DX_DONE);
	assert_int_equal(ask("@$cursession.TTD.Data.Heap().GroupBy(h => h.Size).First()"), DX_STOPPED);
	assert_non_null(strstr(answer, "GroupBy: more than the 1 MiB"));
	assert_int_equal(ask("@$cursession.TTD.Data.Heap().OrderBy(h => h.Size).First()"), DX_STOPPED);
	/* Groups that are only counted or summed up are not kept. */
	value_is("@$cursession.TTD.Data.Heap().GroupBy(h => h.Size).Count(),d", "101");
	value_is("@$cursession.TTD.Data.Heap().GroupBy(h => h.Size).Select(g => g.Count()).Max(),d", "30000");
	value_is("@$cursession.TTD.Data.Heap().GroupBy(h => h.Action).Select(g => g.Sum(h => h.Size)).First(),d",
		 "1515000");
}

static void test_depth(void **state)
{
	char text[8192] = "";
	(void)state;
	memset(text, '(', 4000);
	refused_at(text, 201, "nested too deep");
	for (size_t i = 0; i + 1 < sizeof(text); i++)
		text[i] = "1+"[i % 2];
	assert_int_equal(ask(text), DX_REFUSED);
}

/* Chains in parentheses, each of which begins the next: a tree of so many levels would take the stack of all that goes
   down it, whether it is evaluated or not. */
static void test_chains(void **state)
{
	static const char *const links[] = {"+1", ".A", "[0]"};
	enum { LEVELS = 190, LINKS = 150 };
	(void)state;
	for (size_t kind = 0; kind < sizeof(links) / sizeof(links[0]); kind++) {
		struct sink text;
		size_t length;
		sink_to_memory(&text);
		sink_text(&text, "@$f = x => ");
		for (int i = 0; i < LEVELS; i++)
			sink_text(&text, "(");
		sink_text(&text, "x");
		for (int i = 0; i < LEVELS; i++) {
			for (int link = 0; link < LINKS; link++)
				sink_text(&text, links[kind]);
			sink_text(&text, ")");
		}
		char *query = sink_take(&text, &length);
		assert_int_equal(ask(query), DX_REFUSED);
		assert_non_null(strstr(answer, "nested too deep"));
		free(query);
	}
}

/* The checker takes a member's type from its row, values from the column. */
static void check_columns(const struct dx_class *class, enum column_source source, unsigned least)
{
	unsigned count = 0;
	for (const struct dx_member *row = class->members; row->name; row++) {
		const struct column *column = row->get ? NULL : column_find(source, dx_member_column(row));
		assert_true(!row->get == (dx_member_column(row) >= 0));
		if (row->get)
			continue;
		assert_true(column && column->get);
		unsigned type = column->type == TYPE_WORD || column->type == TYPE_FUNCTION    ? DX_TEXT
				: column->type == TYPE_PROCESS || column->type == TYPE_THREAD ? DX_OBJECT
											      : DX_NUMBER;
		assert_int_equal(row->type, type);
		assert_true(!row->class == (type != DX_OBJECT));
		count++;
	}
	assert_true(count >= least);
}

static void test_columns(void **state)
{
	(void)state;
	check_columns(&dx_allocation_class, COLUMNS_OF_ALLOCATIONS, 11);
	check_columns(&dx_heap_class, COLUMNS_OF_EVENTS, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_operators),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_collections),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_prompts),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_values_in_values),
		cmocka_unit_test(test_lambdas),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_failed_conditions),
		cmocka_unit_test(test_errors_left_out),
	};
	return cmocka_run_group_tests(tests, open_trace, close_trace);
}
