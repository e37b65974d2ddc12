/* SPDX-License-Identifier: MIT */
#include "server/answer/map_answer.h"

#include <errno.h>
#include <stdlib.h>

#include "action/report/page_keepers.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "cells/cell_names.h"
#include "query/extents.h"
#include "server/answer/function_json.h"
#include "server/answer/question.h"

struct map_answer {
	struct shown_trace *shown;
	const struct question *question;
	struct sink *out;
	struct page_map pages;
	size_t shown_runs;
	uint32_t *functions; /* by run: its number in the answer, from 1; 0: no block is live */
};

/* ---- functions ---- */

/* The functions of an answer, in the order in which they were found. */
struct function_numbers {
	struct map places; /* by name plus 1 */
	uint32_t *names;
	size_t count, capacity;
};

static uint32_t function_number(struct function_numbers *numbers, uint32_t function)
{
	bool added;
	uint32_t *place = map_add(&numbers->places, function, &added);
	if (added) {
		memory_grow(numbers->names, numbers->count, numbers->capacity);
		numbers->names[numbers->count++] = function ? function - 1 : CELL_NO_STACK;
		*place = (uint32_t)numbers->count;
	}
	return *place;
}

static void functions_find(struct map_answer *answer, struct action_input *input, struct function_numbers *numbers)
{
	answer->functions = memory_zeroed(answer->shown_runs + 1, sizeof(*answer->functions));
	for (size_t i = 0; i < answer->shown_runs; i++) {
		const struct page_run *run = &answer->pages.runs[i];
		if (run->fullness != PAGE_NONE)
			answer->functions[i] = function_number(numbers, page_keeper_function(input, run->site));
	}
}

static void json_functions(struct json *json, const struct heap_names *names, const struct function_numbers *numbers)
{
	json_begin_array(json, "functions");
	for (size_t i = 0; i < numbers->count; i++) {
		json_begin_array(json, NULL);
		cell_name_write(names, numbers->names[i], json);
		json_end_array(json);
	}
	json_end_array(json);
}

/* ---- sums ---- */

static void json_fullness(struct json *json, const struct page_map *map)
{
	uint64_t pages[PAGE_FULLNESS_COUNT] = {0}, bytes[PAGE_FULLNESS_COUNT] = {0};
	for (size_t i = 0; i < map->count; i++) {
		pages[map->runs[i].fullness] += map->runs[i].count;
		bytes[map->runs[i].fullness] += map->runs[i].bytes;
	}
	json_begin_array(json, "fullness");
	for (unsigned i = 0; i < PAGE_FULLNESS_COUNT; i++) {
		json_begin_object(json, NULL);
		json_count(json, "pages", pages[i]);
		json_count(json, "bytes", bytes[i]);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_keepers(struct json *json, struct map_answer *answer, struct action_input *input, bool are_stacks)
{
	struct heap_names *names = action_names(input);
	struct page_keepers keepers = {0};
	page_keepers_find(&keepers, input, &answer->pages, HEAP_NONE, are_stacks);
	json_count(json, are_stacks ? "stack_count" : "keeper_count", keepers.count);
	json_begin_array(json, are_stacks ? "stacks" : "keepers");
	for (size_t i = 0; i < keepers.count && i < MAP_KEEPERS_MAX; i++) {
		const struct page_keeper *keeper = &keepers.items[i];
		json_begin_object(json, NULL);
		json_count(json, "pages", keeper->pages);
		json_count(json, "bytes", keeper->bytes);
		json_count(json, "blocks", keeper->blocks);
		json_number(json, "oldest_ns", keeper->oldest_ns);
		if (are_stacks) {
			function_json_frames(json, "frames", names, keeper->group);
		} else {
			json_begin_array(json, "function");
			cell_name_write(names, keeper->group ? keeper->group - 1 : CELL_NO_STACK, json);
			json_end_array(json);
		}
		json_end_object(json);
	}
	json_end_array(json);
	free(keepers.items);
}

/* ---- runs, by columns ---- */

/* The pages between the run before, of the same process, and this one; of the first run its page. */
static uint64_t gap_of(const struct page_run *runs, size_t i)
{
	const uint64_t page = runs[i].first / HEAP_PAGE_BYTES;
	return i && runs[i - 1].process == runs[i].process
		       ? page - runs[i - 1].first / HEAP_PAGE_BYTES - runs[i - 1].count
		       : page;
}

static void json_runs(struct json *json, const struct map_answer *answer)
{
	const struct page_run *runs = answer->pages.runs;
#define COLUMN(name, write, value) \
	json_begin_array(json, name); \
	for (size_t i = 0; i < answer->shown_runs; i++) \
		write(json, NULL, value); \
	json_end_array(json);
	COLUMN("process", json_count, runs[i].process)
	COLUMN("gap", json_count, gap_of(runs, i))
	COLUMN("pages", json_count, runs[i].count)
	COLUMN("fullness", json_count, runs[i].fullness)
	COLUMN("function", json_count, answer->functions[i])
	COLUMN("bytes", json_count, runs[i].bytes)
	COLUMN("blocks", json_count, runs[i].blocks)
	COLUMN("oldest_ns", json_number, runs[i].oldest_ns)
#undef COLUMN
}

static void answer_write(struct map_answer *answer, struct action_input *input)
{
	struct json json = {.out = answer->out, .is_for_script = true};
	struct function_numbers numbers = {.count = 0};
	functions_find(answer, input, &numbers);
	answer->out->used = 0;
	json_begin_object(&json, NULL);
	json_count(&json, "page_bytes", HEAP_PAGE_BYTES);
	json_fullness(&json, &answer->pages);
	json_keepers(&json, answer, input, false);
	json_keepers(&json, answer, input, true);
	json_functions(&json, action_names(input), &numbers);
	json_count(&json, "left_out", answer->pages.count - answer->shown_runs);
	json_begin_object(&json, "runs");
	json_runs(&json, answer);
	json_end_object(&json);
	json_end_object(&json);
	json_end(&json);
	free(answer->functions);
	free(numbers.names);
	map_fini(&numbers.places);
}

static int answer_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct map_answer *answer = context;
	const struct action_source *source = analysis->input.sources;
	const char *reason = page_map_missing(source->table);
	if (reason)
		return diag_fail(diag, ENOTSUP, "the trace %s", reason);
	if (!shown_trace_nodes(answer->shown, source))
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	page_map_make(&answer->pages, source->table, source->filter);
	answer->shown_runs = answer->pages.count < MAP_RUNS_MAX ? answer->pages.count : MAP_RUNS_MAX;
	answer_write(answer, &analysis->input);
	page_map_fini(&answer->pages);
	return 0;
}

int map_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		     const struct analysis_caller *caller, struct diag *diag)
{
	struct map_answer answer = {.shown = shown, .question = question, .out = out};
	const struct shown_question ask = {.shown = shown,
					   .filter = question->filter,
					   .has_moment = true,
					   .at_ns = question->at_ns,
					   .make = answer_make,
					   .context = &answer};
	if (!question->has_moment)
		return diag_fail(diag, EINVAL, "a map is of a moment: at=T");
	return shown_trace_ask(&ask, caller, diag);
}
