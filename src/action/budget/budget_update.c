/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_update.h"

#include <inttypes.h>
#include <string.h>

#include "action/actions/action_table.h"
#include "base/text.h"
#include "query/plain_name.h"

enum { PERCENT = BUDGET_WHOLE / 100, DRAFT_SHARE = 20, DRAFT_FUNCTIONS = 10, PLAIN_BYTES = 400 };

/* Whether the figures are what the limit was learned from, as far as it varies. */
static bool agrees(const struct budget_limit *limit, const struct verdict *verdict)
{
	uint64_t variation = budget_share(limit->value, limit->variation);
	return verdict->most <= limit->value && limit->value - verdict->least <= variation;
}

struct budget_change budget_change_of(const struct budget_check *check, size_t number)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	struct budget_change change = {limit->value, limit->tolerance, limit->variation, false};
	if (limit->is_fixed || verdict->state == VERDICT_UNMATCHED || agrees(limit, verdict))
		return change;
	change.value = verdict->most;
	if (check->input->source_count > 1)
		change.variation = budget_share_for(verdict->most, verdict->most - verdict->least);
	if (change.tolerance < change.variation)
		change.tolerance = change.variation;
	change.is_change = change.value != limit->value || change.tolerance != limit->tolerance ||
			   change.variation != limit->variation;
	return change;
}

/* "5%", "0.25%" */
static void percent_put(struct sink *out, uint64_t millionths)
{
	char digits[8];
	snprintf(digits, sizeof(digits), ".%04u", (unsigned)(millionths % PERCENT));
	for (size_t length = strlen(digits); length && strchr(".0", digits[length - 1]); length--)
		digits[length - 1] = 0;
	sink_format(out, "%" PRIu64 "%s%%", millionths / PERCENT, digits);
}

/* A number without a unit means blocks where a metric has no bytes, else bytes. */
void budget_change_put(struct sink *out, const struct budget_limit *limit, const struct budget_change *change)
{
	bool is_only_count = limit->metric->number == ACTION_NUMBER_total_count ||
			     limit->metric->number == ACTION_NUMBER_temporary_count ||
			     limit->metric->number == ACTION_NUMBER_realloc_count;
	sink_text(out, text_count(change->value).data);
	sink_text(out, is_only_count              ? ""
		       : !limit->metric->is_count ? " B"
		       : change->value == 1       ? " block"
						  : " blocks");
	if (change->tolerance) {
		sink_text(out, " +");
		percent_put(out, change->tolerance);
	}
	if (change->variation) {
		sink_text(out, " varies ");
		percent_put(out, change->variation);
	}
}

void budget_update(const struct budget_check *check, struct sink *out)
{
	const struct budget *budget = check->budget;
	size_t at = 0;
	for (size_t i = 0; i < budget->limit_count; i++) {
		const struct budget_limit *limit = &budget->limits[i];
		struct budget_change change = budget_change_of(check, i);
		if (!change.is_change)
			continue;
		sink_bytes(out, budget->text + at, limit->at - at);
		budget_change_put(out, limit, &change);
		at = limit->end;
	}
	sink_bytes(out, budget->text + at, budget->size - at);
}

/* ---- a budget to begin with ---- */

/* Whether a limit may have the text as a frame that means just this. */
static bool is_plain_name(const char *name)
{
	return *name && !name[strcspn(name, "*?!\\\"")] && text_shown(name) == name;
}

/* A name with blanks, or one that would say something else, stands between quotes. */
static void word_put(struct sink *out, const char *word)
{
	bool is_special = word[strcspn(word, " \t")] || *word == '#' || !strcmp(word, "<=");
	for (int i = 0; i < BUDGET_SELECTOR_COUNT; i++)
		is_special |= !strcmp(word, budget_selector_words[i]);
	sink_format(out, is_special ? "\"%s\"" : "%s", word);
}

static void function_put(struct intern *known, struct action_input *input, uint32_t group, struct sink *out)
{
	const struct heap_name *name = group ? heap_names_name(action_names(input), group - 1) : NULL;
	char plain[PLAIN_BYTES];
	if (!name || !name->symbol)
		return;
	heap_plain_symbol(name->symbol, plain, sizeof(plain));
	uint32_t count = known->count;
	/* Overloads have one name. */
	if (!is_plain_name(plain) || strlen(plain) + 1 == sizeof(plain) || intern_text(known, plain) < count)
		return;
	sink_text(out, "bytes self ");
	word_put(out, plain);
	sink_text(out, " <= 0\n");
}

static void functions_put(struct action_input *input, struct action_source *source, struct sink *out)
{
	struct action_input one = {.sources = source, .source_count = 1, .cull = input->cull};
	struct action_rows rows;
	struct intern known = {.count = 0};
	const struct action_choice choice = {
		.sort = action_sort_by(ACTION_NUMBER_total_bytes), .top = DRAFT_FUNCTIONS, .is_brief = true};
	action_rows_make(&rows, &one, &action_frames, &choice);
	for (size_t i = 0; i < rows.shown; i++)
		if (rows.rows[i]->figures->numbers.total_bytes >= source->window->totals.total_bytes / DRAFT_SHARE)
			function_put(&known, &one, rows.rows[i]->group, out);
	action_rows_fini(&rows);
	intern_fini(&known);
}

void budget_draft(struct action_input *input, struct action_source *source, struct sink *out)
{
	struct heap_window window;
	sink_text(out, "# The most that a run may take. xheap check --update writes the numbers, and keeps the rest.\n"
		       "bytes <= 0\nblocks <= 0\npeak <= 0\noutstanding <= 0\noutstanding <= 0 blocks\n");
	if (!source->table->sample_bytes)
		sink_text(out, "temporary <= 0\n");
	heap_window_make(&window, source->table, source->filter, (struct heap_range){0, source->table->duration_ns},
			 HEAP_BY_NONE);
	source->window = &window;
	functions_put(input, source, out);
	source->window = NULL;
	heap_window_fini(&window);
}
