/* SPDX-License-Identifier: MIT */
#include "fleet/fleet_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cells/cell_bytes.h"
#include "cells/cells.h"
#include "symbols/short_name.h"

#define NS_OF_SECOND INT64_C(1000000000)
enum { FINDINGS = 3, SECONDS_OF_HOUR = 3600, SMALLER_STACKS = 0 /* the first node, and the first function */ };

/* A page under construction. */
struct page_making {
	const struct fleet_page *page;
	struct arena arena;
	struct cell_set set;
	struct cell_tree tree;
	struct map children; /* (node + 1, function) -> node; of no parent: 0 */
	struct cell_function_text *functions;
	uint32_t *of_stack; /* its node */
	uint64_t *use;      /* by moment */
	uint64_t *calls;    /* by interval */
	uint32_t peak;      /* a bound */
};

static int64_t duration_ns(const struct fleet_page *page)
{
	return page->series->bounds.times[page->series->bounds.count - 1];
}

/* ---- stacks ---- */

/* "web!parse", "web+0x1234", "[no stack]" */
static struct cell_function_text function_of(struct page_making *making, const char *frames)
{
	const char *label = arena_format(&making->arena, "%.*s", (int)strcspn(frames, "\n"), frames);
	const char *mark = strchr(label, '!'), *offset = strstr(label, "+0x");
	const char *end = mark ? mark : offset ? offset : label, *full = mark ? mark + 1 : end;
	return (struct cell_function_text){
		.image = arena_format(&making->arena, "%.*s", (int)(end - label), label),
		.short_name = short_name(&making->arena, full, NULL, 0),
		.full_name = full,
		.marks = *label == '[' && !mark ? CELL_MARK_WORD : 0};
}

static uint32_t node_add(struct page_making *making, uint32_t parent, uint32_t function)
{
	struct cell_tree *tree = &making->tree;
	memory_grow(tree->nodes, tree->count, tree->capacity);
	tree->nodes[tree->count] =
		(struct cell_node){.parent = parent, .frame = HEAP_NONE, .name = function, .asker = tree->count};
	return tree->count++;
}

/* Return the node of a stack; if there is no room for it, that of the smaller ones. */
static uint32_t stack_add(struct page_making *making, const struct intern_item *stack)
{
	const uint32_t *frames = (const uint32_t *)(const void *)stack->data;
	uint32_t node = 0;
	if (making->tree.count + stack->size / sizeof(*frames) > CELLS_NODES_MAX)
		return SMALLER_STACKS;
	for (size_t i = stack->size / sizeof(*frames); i-- > 0;) {
		bool is_new;
		uint32_t *child = map_add(&making->children, map_pair(node, frames[i]), &is_new);
		if (is_new)
			*child = node_add(making, node, frames[i] + 1);
		node = *child + 1;
	}
	return node - 1;
}

static void tree_make(struct page_making *making)
{
	const struct fleet_series *series = making->page->series;
	const uint64_t shown = series->stack_count;
	making->functions = memory_zeroed(series->frames.count + 1, sizeof(*making->functions));
	making->functions[SMALLER_STACKS] =
		(struct cell_function_text){"", "[smaller stacks]", "[smaller stacks]", CELL_MARK_WORD};
	for (uint32_t i = 0; i < series->frames.count; i++)
		making->functions[i + 1] = function_of(making, series->frames.items[i].data);
	node_add(making, 0, SMALLER_STACKS);
	making->of_stack = memory_zeroed(shown + 1, sizeof(*making->of_stack));
	for (uint32_t i = 0; i < shown; i++) {
		making->of_stack[i] = stack_add(making, &series->stacks.items[i]);
		making->tree.lumped_stacks += making->of_stack[i] == SMALLER_STACKS;
	}
	making->tree.lumped_stacks += (uint32_t)(making->page->answer->row_count - shown);
	making->tree.nodes[SMALLER_STACKS].stacks = making->tree.lumped_stacks;
}

static uint32_t node_of(const struct page_making *making, uint32_t stack)
{
	return stack == FLEET_REST ? SMALLER_STACKS : making->of_stack[stack];
}

/* ---- cells ---- */

/* What began at a moment, and is still there. */
struct live_part {
	uint32_t birth;
	uint64_t amount;
};

/* Bytes, or blocks, of a curve. */
struct sum_place {
	size_t change, made, sum; /* offsets in struct fleet_change and struct cell_sums */
};

static void cell_put(struct page_making *making, const struct fleet_curve *curve, const struct sum_place *amounts,
		     uint32_t birth, uint32_t end, uint64_t amount)
{
	const struct cell_keys keys = {.node = node_of(making, curve->stack),
				       .thread = curve->version,
				       .heap = CELL_NO_HEAP,
				       .birth = birth,
				       .end = end,
				       .kind = end > making->page->series->bounds.count - 1 ? CELL_OPEN : CELL_FREED,
				       .size = CELL_SIZE_ANY,
				       .life = CELL_LIFE_ANY};
	const struct cell cell = cell_with(&keys);
	struct cell_sums sums = {.blocks = 0};
	*(uint64_t *)(void *)((char *)&sums + amounts->sum) = amount;
	cell_set_add(&making->set, &cell, &sums, UINT32_MAX);
}

/* A push says how much came and how much is there, not what went: the youngest, as most blocks of a program die
   young. */
static void curve_take(struct page_making *making, const struct fleet_curve *curve, const struct sum_place *amounts)
{
	const uint32_t moments = making->page->series->bounds.count;
	struct live_part *stack = memory_zeroed(moments, sizeof(*stack));
	uint32_t depth = 0;
	for (uint32_t moment = 0; moment < moments; moment++) {
		const char *change = (const char *)&curve->changes[moment];
		const int64_t more = *(const int64_t *)(const void *)(change + amounts->change);
		const uint64_t made = *(const uint64_t *)(const void *)(change + amounts->made);
		const uint64_t born = more > 0 && made < (uint64_t)more ? (uint64_t)more : made;
		uint64_t gone = born - (uint64_t)more;
		stack[depth++] = (struct live_part){moment, born};
		while (gone && depth) {
			struct live_part *last = &stack[depth - 1];
			const uint64_t part = gone < last->amount ? gone : last->amount;
			if (part)
				cell_put(making, curve, amounts, last->birth, moment, part);
			last->amount -= part;
			gone -= part;
			depth -= !last->amount;
		}
	}
	while (depth-- > 0)
		if (stack[depth].amount)
			cell_put(making, curve, amounts, stack[depth].birth, moments, stack[depth].amount);
	free(stack);
}

static void curves_take(struct page_making *making)
{
	static const struct sum_place all[] = {
		{offsetof(struct fleet_change, bytes), offsetof(struct fleet_change, made_bytes),
		 offsetof(struct cell_sums, bytes)},
		{offsetof(struct fleet_change, blocks), offsetof(struct fleet_change, made_blocks),
		 offsetof(struct cell_sums, blocks)}};
	const struct fleet_series *series = making->page->series;
	for (size_t i = 0; i < series->curve_count; i++)
		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			curve_take(making, &series->curves[i], &all[k]);
	cell_set_sort(&making->set);
}

/* ---- sums over time ---- */

static void times_sum(struct page_making *making)
{
	const uint32_t moments = making->page->series->bounds.count;
	making->use = memory_zeroed(moments + 2, sizeof(*making->use));
	making->calls = memory_zeroed(moments + 2, sizeof(*making->calls));
	for (uint32_t i = 0; i < making->set.count; i++) {
		const struct cell_keys keys = cell_keys_of(&making->set.cells[i]);
		const struct cell_sums *sums = &making->set.cells[i].sums;
		making->use[keys.birth] += sums->bytes;
		making->use[keys.end] -= sums->bytes;
		if (keys.birth)
			making->calls[keys.birth - 1] += sums->blocks;
		if (keys.end && keys.end < moments)
			making->calls[keys.end - 1] += sums->blocks;
	}
	for (uint32_t i = 1; i < moments; i++)
		making->use[i] += making->use[i - 1];
	for (uint32_t i = 1; i < moments; i++)
		making->peak = making->use[i] > making->use[making->peak] ? i : making->peak;
}

static void sums_write(const struct page_making *making, struct sink *out)
{
	const struct fleet_series *series = making->page->series;
	const uint32_t intervals = series->bounds.count - 1;
	uint64_t *most = memory_zeroed(intervals, sizeof(*most));
	uint64_t *resident = memory_zeroed(intervals, sizeof(*resident));
	for (uint32_t i = 0; i < intervals; i++) {
		most[i] = making->use[i] > making->use[i + 1] ? making->use[i] : making->use[i + 1];
		resident[i] = UINT64_MAX;
	}
	cell_answer_write(&(struct cell_answer){.is_whole = true,
						.bounds = &series->bounds,
						.peak = making->peak,
						.set = &making->set,
						.tree = &making->tree,
						.functions = making->functions,
						.function_count = series->frames.count + 1,
						.calls = making->calls,
						.max_bytes = most,
						.resident = resident},
			  out);
	free(most);
	free(resident);
}

/* ---- facts ---- */

static const char *time_text(struct page_making *making, int64_t time_ns)
{
	char text[64] = "";
	const time_t seconds = (time_t)(time_ns / NS_OF_SECOND);
	struct tm parts;
	if (gmtime_r(&seconds, &parts))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
	return arena_text(&making->arena, text);
}

enum { WORDS_MAX = 16 };

/* The words of a command with the filters of the question. frame: NULL: none. Return how many. */
static size_t command_words(struct page_making *making, const char *verb, const char *frame,
			    const char *words[WORDS_MAX])
{
	const struct fleet_question *question = making->page->question;
	const char *last = question->last_ns ? arena_format(&making->arena, "%.9gs",
							    (double)question->last_ns / (double)NS_OF_SECOND)
					     : NULL;
	/* As the option takes it: in UTC. */
	const char *until = question->until_ns
				    ? arena_format(&making->arena, "%sZ", time_text(making, question->until_ns))
				    : NULL;
	const struct {
		const char *option, *value;
	} filters[] = {{"--service", question->service},
		       {"--version", question->version},
		       {"--host", question->host},
		       {"--last", last},
		       {"--until", until}};
	size_t count = 0;
	words[count++] = "xheap";
	words[count++] = "fleet";
	words[count++] = verb;
	words[count++] = making->page->place;
	if (frame)
		words[count++] = frame;
	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
		if (filters[i].value) {
			words[count++] = filters[i].option;
			words[count++] = filters[i].value;
		}
	return count;
}

/* A command as a shell takes it: names are anybody's. */
static const char *command_line(struct page_making *making, const char *verb, const char *frame)
{
	const char *words[WORDS_MAX];
	const size_t count = command_words(making, verb, frame, words);
	struct sink out;
	sink_to_memory(&out);
	sink_text(&out, words[0]);
	for (size_t i = 1; i < count; i++)
		sink_shell_word(&out, words[i]);
	char *text = sink_take(&out, NULL);
	const char *kept = arena_text(&making->arena, text);
	free(text);
	return kept;
}

/* The command that prints the same sums. */
static void json_command(struct json *json, struct page_making *making)
{
	const char *words[WORDS_MAX];
	json_texts(json, "fleet", words, command_words(making, "top", NULL, words));
}

static void json_lists(struct json *json, struct page_making *making)
{
	const struct fleet_series *series = making->page->series;
	json_begin_array(json, "processes");
	for (uint32_t i = 0; i < series->version_count; i++) {
		const struct fleet_series_version *version = &series->versions[i];
		json_begin_object(json, NULL);
		json_text(json, "name", arena_format(&making->arena, "%s%s%s", version->service,
						     *version->version ? " " : "", version->version));
		json_end_object(json);
	}
	json_end_array(json);
	json_begin_array(json, "threads");
	for (uint32_t i = 0; i < series->version_count; i++) {
		json_begin_object(json, NULL);
		json_count(json, "process", i);
		json_text(json, "name", series->versions[i].service);
		json_end_object(json);
	}
	json_end_array(json);
	json_begin_array(json, "heaps");
	json_begin_object(json, NULL);
	json_text(json, "name", "[no heap]");
	json_end_object(json);
	json_end_array(json);
}

static void json_function(struct json *json, const char *key, const struct cell_function_text *function)
{
	json_begin_array(json, key);
	json_text(json, NULL, function->image);
	json_text(json, NULL, function->full_name);
	json_end_array(json);
}

/* ---- growth ---- */

/* The row that grows most by more than chance; NULL: none does. */
static const struct fleet_row *growth_of(const struct page_making *making)
{
	const struct fleet_answer *growth = making->page->growth;
	const bool is_there = growth->shown && growth->rows[0].state != FLEET_IN_SPREAD && growth->rows[0].change > 0;
	return is_there ? &growth->rows[0] : NULL;
}

/* Return a number that is not negative as a whole one. */
static uint64_t whole_number(double number)
{
	return number < (double)INT64_MAX ? (uint64_t)number : INT64_MAX;
}

static void json_growth(struct json *json, struct page_making *making)
{
	const struct fleet_row *row = growth_of(making);
	if (making->page->answer->pushes <= making->page->answer->sessions)
		json_text(json, "growth_unknown", "growth is from a session's first push to its last one");
	if (!row) {
		json_literal(json, "growth", "null");
		return;
	}
	const struct cell_function_text function = function_of(making, row->group);
	json_begin_object(json, "growth");
	json_function(json, "function", &function);
	json_count(json, "bytes_per_second",
		   whole_number(row->change * (double)row->sides[FLEET_AFTER].population / SECONDS_OF_HOUR));
	json_number(json, "from_ns", -1);
	json_number(json, "to_ns", duration_ns(making->page));
	json_end_object(json);
}

/* ---- the peak ---- */

/* The function with most at the peak. */
static void json_answer(struct json *json, struct page_making *making)
{
	uint64_t *sums = memory_zeroed(making->page->series->frames.count + 1, sizeof(*sums)), most = 0;
	uint32_t largest = SMALLER_STACKS;
	for (uint32_t i = 0; i < making->set.count; i++) {
		const struct cell_keys keys = cell_keys_of(&making->set.cells[i]);
		const uint32_t function = making->tree.nodes[keys.node].name;
		if (function == SMALLER_STACKS || keys.birth > making->peak || keys.end <= making->peak)
			continue;
		sums[function] += making->set.cells[i].sums.bytes;
		if (sums[function] > most) {
			most = sums[function];
			largest = function;
		}
	}
	json_begin_object(json, "answer");
	if (most && making->use[making->peak]) {
		json_function(json, "peak_function", &making->functions[largest]);
		json_thousandths(json, "peak_share",
				 (uint64_t)((unsigned __int128)most * 1000 / making->use[making->peak]));
	}
	json_growth(json, making);
	json_end_object(json);
	free(sums);
}

static void json_totals(struct json *json, const struct page_making *making)
{
	const uint64_t *totals = making->page->answer->totals;
	json_begin_object(json, "totals");
	json_count(json, "outstanding_bytes", totals[FLEET_OUTSTANDING_BYTES]);
	json_count(json, "outstanding_count", totals[FLEET_OUTSTANDING_COUNT]);
	json_count(json, "total_bytes", totals[FLEET_TOTAL_BYTES]);
	json_count(json, "total_count", totals[FLEET_TOTAL_COUNT]);
	json_count(json, "peak_bytes", making->use[making->peak]);
	json_number(json, "peak_at_ns", making->page->series->bounds.times[making->peak]);
	json_end_object(json);
}

static const struct fleet_row *row_of(const struct fleet_page *page, uint32_t stack)
{
	return &page->answer->rows[page->series->rows[stack]];
}

static uint64_t outstanding_bytes(const struct fleet_page *page, uint32_t stack)
{
	return row_of(page, stack)->sides[FLEET_AFTER].figures[FLEET_OUTSTANDING_BYTES];
}

/* The title and what explains it; json_end_object() ends it. */
static void json_finding_begin(struct json *json, struct page_making *making, const char *kind, const char *title,
			       const char *evidence, const char *command)
{
	json_begin_object(json, NULL);
	json_text(json, "kind", kind);
	json_text(json, "title", title);
	json_text(json, "evidence", evidence);
	json_text(json, "text", arena_format(&making->arena, "%s: %s", title, evidence));
	json_text(json, "command", command);
}

static void json_grown(struct json *json, struct page_making *making, const struct fleet_row *row)
{
	const struct cell_function_text function = function_of(making, row->group);
	const uint64_t hosts = row->sides[FLEET_AFTER].population;
	const char *title = arena_format(&making->arena, "%s grows by %s per host and hour", function.short_name,
					 text_bytes(whole_number(row->change)).data);
	const char *evidence = arena_format(&making->arena, "in %s%s%s, on %s host%s; error %s", row->service,
					    *row->version ? " " : "", row->version, text_count(hosts).data,
					    text_plural(hosts), text_bytes(whole_number(row->error)).data);
	json_finding_begin(json, making, "growth", title, evidence,
			   command_line(making, "growth", NULL));
	json_begin_object(json, "select");
	json_number(json, "from_ns", -1);
	json_number(json, "to_ns", duration_ns(making->page));
	json_begin_array(json, "classes");
	json_text(json, NULL, "AIFO");
	json_end_array(json);
	json_end_object(json);
	json_function(json, "function", &function);
	json_end_object(json);
}

static void json_stack(struct json *json, struct page_making *making, uint32_t stack)
{
	const struct fleet_page *page = making->page;
	const struct intern_item *item = &page->series->stacks.items[stack];
	const uint32_t *frames = (const uint32_t *)(const void *)item->data;
	const uint64_t bytes = outstanding_bytes(page, stack), hosts = row_of(page, stack)->sides[FLEET_AFTER].hosts;
	const char *title = arena_format(&making->arena, "%s has %s in use on %s host%s",
					 making->functions[frames[0] + 1].short_name, text_bytes(bytes).data,
					 text_count(hosts).data, text_plural(hosts));
	const char *evidence = arena_format(&making->arena, "%u %% of all that is in use",
					    text_percent(bytes, page->answer->totals[FLEET_OUTSTANDING_BYTES]));
	const char *label = page->series->frames.items[frames[0]].data;
	json_finding_begin(json, making, "outstanding", title, evidence,
			   command_line(making, *label == '[' ? "top" : "hosts", *label == '[' ? NULL : label));
	json_begin_object(json, "select");
	json_number(json, "at_ns", duration_ns(page));
	json_end_object(json);
	json_begin_array(json, "stack");
	for (size_t i = item->size / sizeof(*frames); i-- > 0;)
		json_function(json, NULL, &making->functions[frames[i] + 1]);
	json_end_array(json);
	json_end_object(json);
}

static void json_findings(struct json *json, struct page_making *making)
{
	json_begin_array(json, "findings");
	if (growth_of(making))
		json_grown(json, making, growth_of(making));
	for (uint32_t i = 0, found = 0; i < making->page->series->stack_count && found < FINDINGS; i++)
		if (making->of_stack[i] != SMALLER_STACKS && outstanding_bytes(making->page, i)) {
			json_stack(json, making, i);
			found++;
		}
	json_end_array(json);
}

static void json_state_row(struct json *json, const char *kind, uint64_t count, const char *text)
{
	json_begin_object(json, NULL);
	json_text(json, "kind", kind);
	json_count(json, "count", count);
	json_text(json, "text", text);
	json_end_object(json);
}

static void json_state(struct json *json, struct page_making *making)
{
	const struct fleet_answer *answer = making->page->answer;
	json_begin_array(json, "state");
	if (answer->missing)
		json_state_row(json, "losses", answer->missing,
			       arena_format(&making->arena, "%s passed over: %s: %s", text_count(answer->missing).data,
					    answer->notes[0].what, answer->notes[0].why));
	if (answer->period_bytes > 1)
		json_state_row(json, "sample", answer->period_bytes,
			       arena_format(&making->arena,
					    "a sample: one byte of each %s is chosen; numbers are estimates",
					    text_bytes(answer->period_bytes).data));
	json_state_row(json, "file", 0,
		       "pushes say how much came and what is in use, not which blocks went: the youngest are taken");
	json_end_array(json);
}

static uint64_t calls_all(const struct page_making *making)
{
	uint64_t calls = 0;
	for (uint32_t i = 0; i + 1 < making->page->series->bounds.count; i++)
		calls += making->calls[i];
	return calls;
}

static void facts_write(struct page_making *making, struct sink *out)
{
	const struct fleet_page *page = making->page;
	const struct fleet_answer *answer = page->answer;
	struct json json = {.out = out, .line_depth = 2, .is_for_script = true};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_begin_array(&json, "traces");
	json_begin_object(&json, NULL);
	json_text(&json, "name", page->place);
	json_end_object(&json);
	json_end_array(&json);
	json_text(&json, "path", page->place);
	json_text(&json, "command",
		  arena_format(&making->arena, "%s host%s, %s session%s, pushes from %s to %s UTC",
			       text_count(answer->hosts).data, text_plural(answer->hosts),
			       text_count(answer->sessions).data, text_plural(answer->sessions),
			       time_text(making, answer->from_ns), time_text(making, answer->until_ns)));
	json_command(&json, making);
	json_number(&json, "duration_ns", duration_ns(page));
	json_lists(&json, making);
	json_count(&json, "events", calls_all(making));
	json_totals(&json, making);
	json_answer(&json, making);
	json_findings(&json, making);
	json_count(&json, "sample_bytes", answer->period_bytes > 1 ? answer->period_bytes : 0);
	json_state(&json, making);
	json_begin_array(&json, "gaps");
	json_end_array(&json);
	json_begin_array(&json, "marks");
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}

void fleet_page_write(const struct fleet_page *page, struct sink *facts, struct sink *cells)
{
	struct page_making making = {.page = page};
	tree_make(&making);
	curves_take(&making);
	times_sum(&making);
	facts_write(&making, facts);
	sums_write(&making, cells);
	cell_set_fini(&making.set);
	cell_tree_fini(&making.tree);
	map_fini(&making.children);
	arena_fini(&making.arena);
	free(making.functions);
	free(making.of_stack);
	free(making.use);
	free(making.calls);
}
