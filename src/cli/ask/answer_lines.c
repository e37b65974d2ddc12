/* SPDX-License-Identifier: MIT */
#include "cli/ask/answer_lines.h"

#include <stdio.h>
#include <stdlib.h>

#include "action/actions/action_table.h"
#include "action/report/report_columns.h"
#include "action/report/report_rows.h"
#include "action/report/stack_view.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"

enum { LINE_BYTES = 1024, NAME_COLUMNS_LEAST = 16 };

char *answer_line(const char *before, const char *name, const char *after, unsigned width)
{
	struct arena arena = {0};
	unsigned used = text_width(before) + text_width(after), room = NAME_COLUMNS_LEAST;
	char *line;
	if (!width)
		room = UINT32_MAX;
	else if (width > used + NAME_COLUMNS_LEAST)
		room = width - used;
	if (asprintf(&line, "%s%s%s", before, text_fit(&arena, text_shown(name), room, text_has_unicode()), after) < 0)
		memory_exhausted(LINE_BYTES);
	arena_fini(&arena);
	return line;
}

const char *answer_function(struct action_input *input, uint32_t node)
{
	static char name[LINE_BYTES];
	snprintf(name, sizeof(name), "[no stack]");
	if (node && node != HEAP_NONE) {
		const struct heap_names *names = action_names(input);
		const struct heap_frame *frame = heap_names_frame(names, stack_view_user_node(input, node));
		const struct heap_name *own = heap_names_name(names, frame->name);
		snprintf(name, sizeof(name), "%s", own->short_symbol ? own->short_symbol : own->short_text);
	}
	return name;
}

const char *answer_top_function(struct action_input *input, const char *key, uint64_t *number)
{
	const struct action_sort *sort = action_sort_find(key);
	struct action_rows rows;
	action_rows_make(&rows, input, &action_stacks,
			 &(struct action_choice){.sort = sort, .top = 1, .is_brief = true});
	*number = rows.shown ? sort->number(rows.rows[0]->figures) : 0;
	const char *name = answer_function(input, *number ? rows.rows[0]->group : HEAP_NONE);
	action_rows_fini(&rows);
	return name;
}

char *answer_peak_line(struct action_input *input, unsigned width)
{
	const struct action_source *source = &input->sources[0];
	const struct heap_numbers *totals = &source->window->totals;
	uint64_t bytes;
	const char *name = answer_top_function(input, "sp", &bytes);
	char before[LINE_BYTES];
	if (!totals->peak_bytes)
		return answer_line("peak: no block was allocated", "", "", width);
	snprintf(before, sizeof(before), "peak: %s in %s block%s at %s; %u %% of it from ",
		 report_bytes(source, totals->peak_bytes).data, report_count(source, totals->peak_count).data,
		 text_plural(totals->peak_count), text_duration(source->window->peak_at_ns).data,
		 text_percent(bytes, totals->peak_bytes));
	return answer_line(before, name, "", width);
}
