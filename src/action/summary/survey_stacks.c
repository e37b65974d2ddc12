/* SPDX-License-Identifier: MIT */
#include "action/summary/survey_stacks.h"

#include <string.h>

#include "action/actions/stacks.h"
#include "action/report/report_rows.h"
#include "action/summary/survey.h"

static void surveyed_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			    struct action_groups *groups)
{
	action_groups_add(groups, action_site_node(input, source, cell));
}

static void surveyed_extend(struct action_input *input, struct action_source *source, struct action_rows *rows)
{
	const struct heap_window *window = source->window;
	for (uint32_t cell = 0; source->survey && cell < window->cell_count; cell++) {
		const struct survey_site *site = &source->survey->sites[window->cells[cell].site];
		if (!site->short_count && !site->crossed_count)
			continue;
		uint32_t node = action_site_node(input, source, &window->cells[cell]);
		uint32_t row = action_rows_find(rows, input, source, node, window->cells[cell].by);
		if (row == HEAP_NONE)
			continue;
		uint64_t *extra = rows->memory[row].figures[source - input->sources].extra;
		extra[SURVEYED_SHORT] += site->short_count;
		extra[SURVEYED_SHORT_BYTES] += site->short_bytes;
		extra[SURVEYED_CROSSED] += site->crossed_count;
		extra[SURVEYED_CROSSED_BYTES] += site->crossed_bytes;
	}
}

const struct action action_surveyed = {
	.name = "surveyed",
	.title = "Stacks",
	.label = "stack",
	.help = "stacks with what a survey found",
	.groups = surveyed_groups,
	.extend = surveyed_extend,
	.text = action_stack_text,
	.json = action_stack_json,
	.lines = action_stack_lines,
	.extra = {{"short_lived_count", NULL, EXTRA_COUNT},
		  {"short_lived_bytes", NULL, EXTRA_BYTES},
		  {"crossed_count", NULL, EXTRA_COUNT},
		  {"crossed_bytes", NULL, EXTRA_BYTES}},
	.extra_count = 4,
};
