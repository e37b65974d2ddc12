/* SPDX-License-Identifier: MIT */
/*
 * Queries, through lexer, parser, checker, interpreter and all four outputs, over small traces of the corpus. The first byte chooses trace,
 * output and levels. Beside damaged queries, others are made from a grammar: deep ones, huge literals, wrong types.
 */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dx/command.h"
#include "dx/language/completion.h"
#include "match/match.h"
#include "replay.h"
#include "trace/reader.h"

enum { TRACES = 4, QUERY_MAX = 4096, STEPS_MAX = 3000, MEMORY_BYTES = 4 << 20, GRAMMAR_DEPTH = 6, DOTS_MAX = 8 };

static const char *const names[TRACES] = {"plain", "forks", "losses", "nested"};
static struct opened {
	struct trace *trace;
	struct heap_table *table;
	struct symbols *symbols;
	struct heap_names *names;
} opened[TRACES];

static struct heap_table *table_get(void *context)
{
	struct opened *of = context;
	struct diag diag = {""};
	struct heap_build how = {.fd = -1};
	if (!of->table && heap_table_build(&of->table, of->trace, &how, &diag))
		of->table = NULL;
	return of->table;
}

static struct heap_names *names_get(void *context)
{
	struct opened *of = context;
	if (!of->names) {
		of->symbols = symbols_new();
		of->names = heap_names_new(of->trace, of->symbols, false);
	}
	return of->names;
}

static struct opened *open_trace(unsigned number)
{
	const char *source = getenv("SOURCE");
	char path[PATH_MAX];
	struct diag diag = {""};
	if (opened[number].trace)
		return &opened[number];
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/trace/%s", source ? source : ".", names[number]);
	if (trace_open(&opened[number].trace, path, &diag)) {
		fprintf(stderr, "%s\n", diag.text);
		abort();
	}
	return &opened[number];
}

/* A query whose answer nobody reads, with the variables of the session. */
static void run_beside(struct dx_session *session, const struct dx_command *how, const char *text)
{
	struct dx_command command = *how;
	struct diag diag = {""};
	struct sink out;
	sink_to_memory(&out);
	if (!dx_command_parse(text, &command, &diag))
		dx_command_run(session, &command, &out, &out);
	sink_end(&out);
}

/* The variable @$v is there before the query, and what it is behind the query can still be used. */
static const char *const variables[] = {"@$v = 7", "@$v = x => x.Size", "@$v = (x, y) => y",
					"@$v = @$cursession.TTD.Data.Heap().Where(h => h.Size > 8)",
					"@$v = new { A = 1, F = (x => x) }"};
static const char *const uses[] = {"@$v", "@$w = @$v.Take(3)", "@$v(@$w)", "@$vars"};

/* The answer as a text, which the caller frees. */
static char *answer(unsigned how, const char *text, bool is_naive, enum dx_status *status)
{
	struct opened *of = open_trace(how % TRACES);
	struct dx_session session = {.trace = of->trace, .table_get = table_get, .names_get = names_get, .context = of};
	struct dx_command command = {
		.layout = {.levels = how / 16 % 3, .is_grid = how / 4 % 4 == 1, .is_verbose = how / 64 == 3},
		.format = (enum dx_format)(how / 4 % 4 == 2   ? DX_FORMAT_CSV
					   : how / 4 % 4 == 3 ? DX_FORMAT_JSON
							      : DX_FORMAT_TEXT),
		.is_naive = is_naive,
		.memory_bytes = MEMORY_BYTES,
		.steps_max = STEPS_MAX};
	struct diag diag = {""};
	struct sink out, errors;
	sink_to_memory(&out);
	sink_to_memory(&errors);
	dx_session_init(&session);
	*status = DX_REFUSED;
	run_beside(&session, &command, variables[how % (sizeof(variables) / sizeof(variables[0]))]);
	if (!dx_command_parse(text, &command, &diag)) {
		*status = dx_command_run(&session, &command, &out, &errors);
		/* A refusal says why; an answer says something. */
		if ((*status == DX_REFUSED || *status == DX_STOPPED) ? !errors.used : !out.used)
			abort();
	}
	for (size_t i = 0; strstr(text, "@$v") && i < sizeof(uses) / sizeof(uses[0]); i++)
		run_beside(&session, &command, uses[i]);
	dx_session_fini(&session);
	sink_end(&errors);
	return sink_take(&out, NULL);
}

static void name_count(void *context, const char *name, bool is_method)
{
	*(unsigned *)context += *name != 0 || is_method;
}

/* The names that may follow each dot of the query. */
static void complete(unsigned how, const char *text)
{
	struct opened *of = open_trace(how % TRACES);
	struct dx_session session = {.trace = of->trace, .table_get = table_get, .names_get = names_get, .context = of};
	struct dx_query query;
	unsigned count = 0, dots = 0;
	dx_session_init(&session);
	dx_query_init(&query, &session, MEMORY_BYTES, NULL);
	for (const char *dot = strchr(text, '.'); dot && dots < DOTS_MAX; dot = strchr(dot + 1, '.'), dots++) {
		const char *begin = dx_copy_text(&query.whole, text, (size_t)(dot + 1 - text));
		unsigned before = count;
		/* A known type has members or methods: each value has ToDisplayString(). */
		if (dx_complete(&query, begin, name_count, &count) != (count > before))
			abort();
	}
	dx_query_fini(&query);
	dx_session_fini(&session);
}

/* A query never crashes, and has the same answer whether it is interpreted as it is written or not. */
static void ask(unsigned how, const char *text)
{
	enum dx_status status, naive_status;
	char *one = answer(how, text, false, &status);
	if (strstr(text, "GroupBy") || strstr(text, "Count") || strstr(text, "Sum")) {
		char *other = answer(how, text, true, &naive_status);
		bool are_complete = status != DX_STOPPED && naive_status != DX_STOPPED;
		if (are_complete && (status != naive_status || strcmp(one, other) != 0)) {
			fprintf(stderr, "%s\n%s\n-noPlan:\n%s\n", text, one, other);
			abort();
		}
		free(other);
	}
	free(one);
	complete(how, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[QUERY_MAX + 1];
	if (!size)
		return 0;
	size_t length = size - 1 < QUERY_MAX ? size - 1 : QUERY_MAX;
	memcpy(text, data + 1, length);
	text[length] = 0;
	ask(data[0], text);
	return 0;
}

/* ---- the grammar ---- */

struct maker {
	uint32_t random;
	char text[QUERY_MAX + 1];
	size_t length;
};

static unsigned any_below(struct maker *maker, unsigned limit)
{
	maker->random = maker->random * 1664525 + 1013904223;
	return (maker->random >> 8) % limit;
}

static void put(struct maker *maker, const char *text)
{
	size_t length = strlen(text);
	if (maker->length + length < QUERY_MAX) {
		memcpy(maker->text + maker->length, text, length + 1);
		maker->length += length;
	}
}

#define PICK(maker, words) put((maker), (words)[any_below((maker), sizeof(words) / sizeof((words)[0]))])

static void make_value(struct maker *maker, unsigned depth);

static void make_lambda(struct maker *maker, unsigned depth)
{
	put(maker, any_below(maker, 6) ? "x => " : "(x, y) => ");
	make_value(maker, depth + 1);
}

/* GroupBy with a lambda over its groups. */
static void make_groups(struct maker *maker, unsigned depth)
{
	static const char *const of_group[] = {"g.Count()",
					       "g.First().Size",
					       "g.Sum(h => h.Size)",
					       "g.Max(h => h.Size)",
					       "g.Min(h => h.TimeStart)",
					       "g.Any(h => h.Size > 8)",
					       "g.Average(h => h.Size)",
					       "g.Count(h => h.Size)",
					       "g.Count(h => 1 / (h.Index - 2) > 0)",
					       "g.Any(h => 16 % h.Size == 1)",
					       "g.First(h => h.Size / 0 == 1)",
					       "g.Last().Action",
					       "g.Max(h => h.Action)",
					       "g.Sum(h => h.Action)",
					       "g.First(h => h.Size > 9)",
					       "g.Select(h => g.Count()).First()",
					       "g.Sum(g => g.Size)",
					       "g"};
	put(maker, "@$cursession.TTD.Data.Heap().GroupBy(");
	make_lambda(maker, depth + 1);
	put(maker, ").Select(g => new { A = ");
	PICK(maker, of_group);
	put(maker, ", B = ");
	PICK(maker, of_group);
	put(maker, " })");
}

/* Conditions and sums that plans answer, and some that they do not. */
static void make_plan(struct maker *maker)
{
	static const char *const conditions[] = {"h.Size > 100",
						 "h.Size != 250",
						 "h.Address == 0x7f0000010090",
						 "h.Action == \"Free\"",
						 "\"Alloc\" != h.Action",
						 "h.Action == \"None\"",
						 "h.PreviousAddress != h.Address",
						 "h.Size <= h.Size",
						 "8 < h.Size",
						 "h.Size != h.PreviousAddress",
						 "true",
						 "h.Address != 0",
						 "h.Size < 4.5",
						 "h.PreviousAddress == 0",
						 "h.Duration > 0",
						 "h.Size >= 18446744073709551615"};
	static const char *const joints[] = {" && ", " || ", " && !", " || !"};
	static const char *const ends[] = {".Count()",
					   ".Sum(h => h.Size)",
					   ".Sum(h => h.Address)",
					   ".Count(h => h.Size > 50)",
					   ".Sum(h => h.PreviousAddress)",
					   ".Sum(h => 3)",
					   ".Count(h => h.Size)"};
	put(maker, any_below(maker, 2) ? "@$cursession.TTD.Data.Heap()" : "@$cursession.TTD.Data.Heap(false)");
	for (unsigned count = any_below(maker, 3); count > 0; count--) {
		put(maker, ".Where(h => ");
		PICK(maker, conditions);
		for (unsigned more = any_below(maker, 3); more > 0; more--) {
			PICK(maker, joints);
			put(maker, "(");
			PICK(maker, conditions);
			put(maker, ")");
		}
		put(maker, ")");
	}
	PICK(maker, ends);
}

static void make_sequence(struct maker *maker, unsigned depth)
{
	static const char *const roots[] = {"@$cursession.TTD.Data.Heap()",
					    "@$curprocess.TTD.Data.Heap(false)",
					    "@$cursession.TTD.Data.Allocations()",
					    "@$cursession.Processes",
					    "@$cursession.TTD.Data.Leaks()",
					    "@$cursession.TTD.Calls()",
					    "@$curprocess.TTD.Events",
					    "@$cursession.TTD.Data.Live(@$position(\"7D0:1\"))",
					    "@$cursession.TTD.Data.HeapAnalyze()",
					    "@$cursession.TTD.Utility.GetHeapAddress(0x7f0000010010)",
					    "@$vars",
					    "@$curthread",
					    "x"};
	static const char *const of_lambda[] = {"Where",     "Select",    "OrderBy", "GroupBy", "OrderByDescending",
						"SkipWhile", "TakeWhile", "Flatten", "ThenBy",  "Count",
						"Sum",       "First",     "Last",    "Min",     "Max",
						"All",       "Any",       "Average", "Single",  "AllNonError"};
	static const char *const plain[] = {
		"Count()",
		"Distinct()",
		"Skip(2)",
		"Take(3)",
		"First()",
		"Last()",
		"Any()",
		"AllNonError()",
		"Flatten()",
		"Concat(@$cursession.Processes)",
		"Union(@$curprocess.Threads)",
		"Sum()",
		"Min()",
		"Join(@$curprocess.Threads, x => x.Id, y => y.Id, (x, y) => new { A = x, B = y })",
		"Aggregate((a, b) => a)",
		"ToDisplayString()",
		"Contains(5)",
		"SequenceEqual(@$cursession.Processes)",
		"Except(@$cursession.Processes)",
		"Intersect(@$cursession.Processes)"};
	PICK(maker, roots);
	for (unsigned count = any_below(maker, 4); count > 0; count--) {
		put(maker, ".");
		if (any_below(maker, 2)) {
			PICK(maker, plain);
			continue;
		}
		PICK(maker, of_lambda);
		put(maker, "(");
		make_lambda(maker, depth + 1);
		put(maker, ")");
	}
}

static void make_value(struct maker *maker, unsigned depth)
{
	static const char *const leaves[] = {"1",
					     "0x7f",
					     "0n10",
					     "0y101",
					     "18446744073709551615",
					     "99999999999999999999",
					     "1.5",
					     "\"text\"",
					     "true",
					     "x",
					     "x.Size",
					     "x.Action",
					     "x.TimeStart",
					     "x.Address",
					     "x.Stack",
					     "x.First().Size",
					     "x.Lifetime",
					     "x.Parameters[0]",
					     "x.State",
					     "x.Thread.Id",
					     "x.TimeStart.Sequence",
					     "\"\xff\"",
					     "x.@\"odd name\"",
					     "@$v",
					     "x.Count()",
					     "y"};
	static const char *const operators[] = {"+",  "-",  "*",  "/",  "%", "<<", ">>", "<",  ">",
						"<=", ">=", "==", "!=", "&", "|",  "^",  "&&", "||"};
	unsigned form = depth < GRAMMAR_DEPTH ? any_below(maker, 13) : 0;
	if (form < 4) {
		PICK(maker, leaves);
	} else if (form < 7) {
		put(maker, "(");
		make_value(maker, depth + 1);
		PICK(maker, operators);
		make_value(maker, depth + 1);
		put(maker, ")");
	} else if (form == 7) {
		put(maker, any_below(maker, 2) ? "-" : "!");
		make_value(maker, depth + 1);
	} else if (form == 8) {
		put(maker, "new { A = ");
		make_value(maker, depth + 1);
		put(maker, ", B = ");
		make_value(maker, depth + 1);
		put(maker, " }");
	} else if (form == 9) {
		put(maker, "(");
		make_value(maker, depth + 1);
		put(maker, " ? ");
		make_value(maker, depth + 1);
		put(maker, " : ");
		make_value(maker, depth + 1);
		put(maker, ")");
	} else if (form == 10) {
		bool is_lambda = any_below(maker, 2);
		put(maker, is_lambda ? "(" : "@$v");
		if (is_lambda)
			make_lambda(maker, depth + 1);
		put(maker, is_lambda ? ")(" : "(");
		make_value(maker, depth + 1);
		put(maker, any_below(maker, 4) ? ")" : ", 1)");
	} else {
		make_sequence(maker, depth + 1);
	}
}

static void make_queries(uint8_t *data, size_t size)
{
	static const char *const ends[] = {"",       "",   "",    ",d",  ",x",  ",3",      ",b,2",
					   ",[1+1]", ",!", ",en", ",zz", "[0]", ".Count()"};
	struct maker maker = {.random = (uint32_t)size};
	(void)data;
	for (int round = 0; round < (getenv("SOAK") ? 20000 : 2000); round++) {
		maker.length = 0;
		put(&maker, any_below(&maker, 8) ? "" : "@$v = ");
		if (any_below(&maker, 5) == 0)
			make_plan(&maker);
		else if (any_below(&maker, 5) == 0)
			make_groups(&maker, 2);
		else if (any_below(&maker, 3))
			make_sequence(&maker, 0);
		else
			make_value(&maker, 0);
		PICK(&maker, ends);
		ask(any_below(&maker, 256), maker.text);
	}
	/* Depth without end. */
	static const char *const repeated[] = {"(",    "-", "x => ",    "new { A = ", "@$v.",
					       "1 + ", "[", "\"a\" + ", "(x, y) => "};
	for (size_t i = 0; i < sizeof(repeated) / sizeof(repeated[0]); i++) {
		maker.length = 0;
		while (maker.length + 32 < QUERY_MAX)
			put(&maker, repeated[i]);
		ask(0, maker.text);
	}
}

static void close_all(void)
{
	for (unsigned i = 0; i < TRACES; i++) {
		heap_names_free(opened[i].names);
		symbols_free(opened[i].symbols);
		heap_table_free(opened[i].table);
		if (opened[i].trace)
			trace_close(opened[i].trace);
	}
}

const struct replay replay = {
	.bytes_max = 1 << 12, .cuts = 40, .flip_rounds = 2000, .more = make_queries, .end = close_all};
