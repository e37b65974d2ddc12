/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "action/diff/diff_words.h"
#include "action/report/culled.h"
#include "action/report/report_columns.h"
#include "base/text.h"
#include "export/report.h"

/* The objects of a row or of the totals, each with all numbers: X(key, in which reports, value). */
#define OBJECTS(X) \
	X(a, ALWAYS, sides[DIFF_A].mean) \
	X(b, ALWAYS, sides[DIFF_B].mean) \
	X(change, ALWAYS, change) \
	X(a_min, OF_RUNS, sides[DIFF_A].min) \
	X(a_max, OF_RUNS, sides[DIFF_A].max) \
	X(a_deviation, OF_RUNS, sides[DIFF_A].deviation) \
	X(b_min, OF_RUNS, sides[DIFF_B].min) \
	X(b_max, OF_RUNS, sides[DIFF_B].max) \
	X(b_deviation, OF_RUNS, sides[DIFF_B].deviation) \
	X(change_error, OF_ESTIMATES, error)

enum object_kind { OBJECT_ALWAYS, OBJECT_OF_RUNS, OBJECT_OF_ESTIMATES };

#define X(key, kind, value) \
	static long double value_of_##key(const struct diff_change *of) \
	{ \
		return of->value; \
	}
OBJECTS(X)
#undef X

static const struct diff_object {
	const char *key;
	enum object_kind kind;
	long double (*value)(const struct diff_change *of);
} objects[] = {
#define X(key, kind, value) {#key, OBJECT_##kind, value_of_##key},
	OBJECTS(X)
#undef X
};
enum { OBJECT_COUNT = sizeof(objects) / sizeof(*objects) };

static bool has_object(const struct report *report, enum object_kind kind)
{
	return kind == OBJECT_ALWAYS || diff_has_runs(&report->diff) ||
	       (kind == OBJECT_OF_ESTIMATES && diff_is_sample(&report->diff));
}

/* row NULL: of the totals. */
static void changes(struct json *json, const struct report *report, const struct action_row *row)
{
	struct diff_change of[ACTION_NUMBER_COUNT];
	bool is_known[ACTION_NUMBER_COUNT];
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++) {
		enum action_number number = (enum action_number)i;
		is_known[i] = diff_has_number(&report->diff, number);
		of[i] = row ? diff_of_row(&report->diff, row, number) : diff_of_totals(&report->diff, number);
	}
	for (int k = 0; k < OBJECT_COUNT; k++) {
		if (!has_object(report, objects[k].kind))
			continue;
		json_begin_object(json, objects[k].key);
		for (int i = 0; i < ACTION_NUMBER_COUNT; i++)
			if (is_known[i])
				json_literal(json, report_numbers[i].name, text_decimal(objects[k].value(&of[i])).data);
		json_end_object(json);
	}
	if (!has_object(report, OBJECT_OF_ESTIMATES))
		return;
	json_begin_array(json, "in_spread");
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++)
		if (is_known[i] && of[i].is_in_spread)
			json_text(json, NULL, report_numbers[i].name);
	json_end_array(json);
}

static void row_json(struct json *json, const struct report *report, const struct report_part *part,
		     const struct action_row *row)
{
	char id[17], *by = report_row_by(report, part, row);
	snprintf(id, sizeof(id), "%016" PRIx64, action_row_id(&part->rows, row, by));
	json_begin_object(json, NULL);
	json_text(json, "id", id);
	json_text(json, "state", diff_state_name(diff_row_state(&report->diff, row)));
	if (*by)
		json_text(json, heap_by_name(report->diff.input->sources[0].window->by), by);
	if (part->action->parent)
		json_count(json, "depth", row->depth);
	changes(json, report, row);
	part->action->json(report->diff.input, row->group, json);
	json_end_object(json);
	free(by);
}

static void part_json(struct json *json, const struct report *report, const struct report_part *part)
{
	const struct action_rows *rows = &part->rows;
	const struct diff_counts *counts = &part->counts;
	json_begin_object(json, NULL);
	json_text(json, "action", part->action->name);
	json_text(json, "sort", part->sort->key);
	json_count(json, "row_count", rows->count);
	json_count(json, "cut", rows->count - rows->shown);
	json_count(json, "unchanged", counts->unchanged);
	json_count(json, "new", counts->states[DIFF_IS_NEW]);
	json_count(json, "gone", counts->states[DIFF_IS_GONE]);
	json_count(json, "matched_by_name", counts->states[DIFF_IN_BOTH] - counts->by_offset);
	json_count(json, "matched_by_offset", counts->by_offset);
	json_begin_array(json, "rows");
	for (size_t i = 0; i < rows->shown; i++)
		row_json(json, report, part, rows->rows[i]);
	json_end_array(json);
	json_end_object(json);
}

static void side_json(struct json *json, const struct report *report, enum diff_side side, const char *key)
{
	const struct action_input *input = report->diff.input;
	json_begin_array(json, key);
	for (unsigned i = 0; i < report->diff.runs[side]; i++) {
		const unsigned source = diff_first_source(&report->diff, side) + i;
		struct action_input one = *input;
		one.sources = &input->sources[source];
		one.source_count = 1;
		json_begin_object(json, NULL);
		report_json_source(json, &(struct report){.diff = {.input = &one}});
		if (heap_names_lent_count(one.sources->names))
			json_count(json, "lent_names", heap_names_lent_count(one.sources->names));
		if (report->diff.scales)
			json_literal(json, "factor", text_decimal(report->diff.scales[source]).data);
		json_end_object(json);
	}
	json_end_array(json);
}

static void versions(struct json *json, const struct report *report)
{
	size_t count;
	const char *const *names = heap_names_versioned(action_names(report->diff.input), &count);
	json_begin_array(json, "versioned_images");
	for (size_t i = 0; i < count; i++)
		json_text(json, NULL, names[i]);
	json_end_array(json);
	char **others = diff_other_builds(&report->diff, &count);
	json_begin_array(json, "unmatched_images");
	for (size_t i = 0; i < count; i++) {
		json_text(json, NULL, others[i]);
		free(others[i]);
	}
	json_end_array(json);
	free(others);
}

void diff_json(const struct report *report, struct sink *out)
{
	struct json json = {.out = out, .line_depth = 4};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_begin_object(&json, "filters");
	for (size_t i = 0; i < report->filter_count; i++)
		json_text(&json, report->filters[i].name, report->filters[i].text);
	json_end_object(&json);
	culled_json(&json, report->diff.input);
	json_bool(&json, "different_programs", diff_is_of_other_programs(&report->diff));
	versions(&json, report);
	json_text(&json, "normalise", diff_basis_name(report->basis));
	side_json(&json, report, DIFF_A, "a");
	side_json(&json, report, DIFF_B, "b");
	json_begin_object(&json, "totals");
	changes(&json, report, NULL);
	json_end_object(&json);
	json_begin_array(&json, "actions");
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups)
			part_json(&json, report, &report->parts[i]);
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}
