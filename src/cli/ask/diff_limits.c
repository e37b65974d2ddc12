/* SPDX-License-Identifier: MIT */
#include "cli/ask/diff_limits.h"

#include <stdlib.h>

#include "action/actions/action_table.h"
#include "action/actions/stacks.h"
#include "action/diff/diff_words.h"
#include "action/report/stack_view.h"
#include "cli/ask/analysis_options.h"
#include "cli/cli.h"

static void say_growth(const struct diff_limits *limits, const struct action_sort *sort, const char *what,
		       const struct diff_change *change)
{
	const enum action_number number = action_sort_number(sort);
	cli_say("%s%s%s grew from %s to %s (%s), by more than %s", what ? what : "", what ? ": " : "", sort->title,
		diff_text_amount(number, change->sides[DIFF_A].mean).data,
		diff_text_amount(number, change->sides[DIFF_B].mean).data,
		*diff_text_percent(change).data ? diff_text_percent(change).data : "new", limits->word);
}

static int compare_ranks(const void *a, const void *b)
{
	const struct action_row *one = *(const struct action_row *const *)a,
				*other = *(const struct action_row *const *)b;
	return one->rank != other->rank ? (one->rank > other->rank ? -1 : 1) : 0;
}

/* Keep the rows of stacks that have one of the limited frames and grew by too much; return how many. */
static size_t keep_grown(struct diff_limits *limits, const struct diff *diff, const struct action_sort *sort,
			 struct action_rows *rows)
{
	size_t kept = 0;
	for (size_t i = 0; i < rows->count; i++) {
		struct action_row *row = rows->rows[i];
		const struct diff_change change = diff_of_row(diff, row, action_sort_number(sort));
		if (action_stack_matches(diff->input, row->group, &limits->frames) &&
		    diff_is_above(&change, &limits->limit))
			rows->rows[kept++] = row;
	}
	if (kept)
		qsort(rows->rows, kept, sizeof(*rows->rows), compare_ranks);
	return kept;
}

/* Return how many stacks with one of the limited frames grew by too much, after a message about each of the first. */
static size_t judge_stacks(struct diff_limits *limits, const struct diff *diff, const struct action_sort *sort)
{
	enum { SAID_MAX = 10 };
	struct action_rows stacks;
	struct diff_counts counts;
	diff_rows_make(&stacks, &counts, diff, &action_stacks, sort, 0);
	heap_patterns_settle(&limits->frames, action_names(diff->input));
	const size_t grown = keep_grown(limits, diff, sort, &stacks);
	for (size_t i = 0; i < grown && i < SAID_MAX; i++) {
		const struct action_row *row = stacks.rows[i];
		const struct diff_change change = diff_of_row(diff, row, action_sort_number(sort));
		uint32_t node = stack_view_user_node(diff->input, row->group);
		const struct heap_names *names = action_names(diff->input);
		char *label = action_label(diff->input, heap_names_name(names, heap_names_frame(names, node)->name));
		say_growth(limits, sort, label, &change);
		free(label);
	}
	if (grown > SAID_MAX)
		cli_say("and %zu more stacks", grown - SAID_MAX);
	action_rows_fini(&stacks);
	return grown;
}

int diff_limits_judge(struct diff_limits *limits, const struct diff *diff, const struct action_sort *sort)
{
	if (!limits->word)
		return CLI_OK;
	const struct diff_change change = diff_of_totals(diff, action_sort_number(sort));
	bool is_above = diff_is_above(&change, &limits->limit);
	if (is_above)
		say_growth(limits, sort, NULL, &change);
	if (limits->frames.count) {
		is_above |= judge_stacks(limits, diff, sort) > 0;
		asking_check_patterns(&limits->frames, "-fail-frames", action_names(diff->input));
	}
	return is_above ? CLI_NO : CLI_OK;
}
