/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_json.h"

#include <stdlib.h>

#include "action/actions/stacks.h"
#include "action/budget/budget_check.h"
#include "action/budget/budget_text.h"
#include "action/report/culled.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "trace/reader.h"

static void selectors_put(struct json *json, const struct budget_check *check, const struct budget_limit *limit)
{
	const struct budget_selection *selection = budget_selection_of(check->budget, limit);
	for (int i = 0; i < BUDGET_SELECTOR_COUNT; i++) {
		if (!selection->lists[i].count)
			continue;
		json_begin_array(json, budget_selector_words[i]);
		for (uint32_t k = 0; k < selection->lists[i].count; k++)
			json_text(json, NULL, budget_word(check->budget, selection->lists[i].items[k]));
		json_end_array(json);
	}
}

static void stacks_put(struct json *json, const struct budget_check *check, const struct verdict *verdict)
{
	json_begin_array(json, "stacks");
	for (size_t i = 0; i < verdict->stack_count; i++) {
		json_begin_object(json, NULL);
		json_count(json, "figure", verdict->stacks[i].number);
		if (budget_check_has_before(check))
			json_count(json, "before", verdict->stacks[i].before);
		action_stack_json(check->input, verdict->stacks[i].node, json);
		json_end_object(json);
	}
	json_end_array(json);
	json_count(json, "stack_count", verdict->stacks_in_all);
}

static void limit_put(struct json *json, const struct budget_check *check, size_t number)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	char *text = budget_limit_text(check->budget, limit), *sentence = budget_sentence(check, number);
	json_begin_object(json, NULL);
	json_text(json, "state", verdict_words[verdict->state]);
	json_text(json, "limit", text);
	if (!check->baseline) {
		json_count(json, "line", limit->line);
		json_count(json, "column", limit->column);
	}
	json_text(json, "number", report_number_names[limit->metric->number]);
	selectors_put(json, check, limit);
	json_count(json, "value", limit->value);
	json_count(json, "tolerance_millionths", limit->tolerance);
	json_count(json, "variation_millionths", limit->variation);
	json_count(json, "allowed", verdict->allowed);
	json_count(json, "least", verdict->least);
	json_count(json, "most", verdict->most);
	if (verdict->possible > verdict->most)
		json_count(json, "possible", verdict->possible);
	json_begin_array(json, "figures");
	for (unsigned run = 0; run < check->input->source_count; run++)
		json_count(json, NULL, budget_check_figure(check, limit, run));
	json_end_array(json);
	json_text(json, "message", sentence);
	if (verdict->stacks)
		stacks_put(json, check, verdict);
	json_end_object(json);
	free(sentence);
	free(text);
}

static void traces_put(struct json *json, const char *key, const struct action_input *input)
{
	json_begin_array(json, key);
	for (unsigned i = 0; i < input->source_count; i++) {
		const struct action_source *source = &input->sources[i];
		struct text missing = budget_missing(source);
		json_begin_object(json, NULL);
		json_text(json, "trace", source->path);
		json_bool(json, "complete", losses_is_complete(trace_dictionary(source->trace)));
		json_known_text(json, "missing", missing.data);
		if (source->table->sample_bytes)
			json_count(json, "sample_bytes", source->table->sample_bytes);
		json_end_object(json);
	}
	json_end_array(json);
}

static void last_parts_put(struct json *json, const struct budget_check *check)
{
	bool has_begun = false;
	for (uint32_t word = 0; word < check->budget->words.count; word++) {
		size_t count;
		const char **frames = budget_match_last_parts(check->match, action_names(check->input), word, &count);
		if (count && !has_begun)
			json_begin_array(json, "matched_last_parts");
		has_begun |= count > 0;
		if (count)
			culled_last_parts_json(json, budget_word(check->budget, word), frames, count);
		free(frames);
	}
	if (has_begun)
		json_end_array(json);
}

void budget_json(const struct budget_check *check, struct sink *out)
{
	struct json json = {.out = out, .line_depth = 3};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	if (!check->baseline)
		json_text(&json, "budget", check->budget->path);
	json_text(&json, "result", budget_check_has_failed(check) ? "failed" : "passed");
	json_bool(&json, "strict", check->is_strict);
	json_bool(&json, "allow_incomplete", check->takes_incomplete);
	json_begin_object(&json, "counts");
	for (int state = 0; state < VERDICT_STATE_COUNT; state++)
		json_count(&json, verdict_words[state], check->counts[state]);
	json_end_object(&json);
	if (check->baseline)
		traces_put(&json, "baseline", check->baseline);
	if (check->nameless.path) {
		json_begin_object(&json, "without_names");
		json_text(&json, "trace", check->nameless.path);
		json_text(&json, "image", check->nameless.image);
		json_end_object(&json);
	}
	traces_put(&json, "traces", check->input);
	culled_json(&json, check->input);
	last_parts_put(&json, check);
	json_begin_array(&json, "limits");
	for (size_t i = 0; i < check->budget->limit_count; i++)
		limit_put(&json, check, i);
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}
