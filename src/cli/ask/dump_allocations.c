/* SPDX-License-Identifier: MIT */
/* Every block: where and when it began and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/early_end.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/dump.h"
#include "cli/ask/dump_rows.h"
#include "export/export.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

/* As the list has it, but for blocks that were alive when recording ended. */
static void put_end_kind(const struct dump_row *row, struct dump_value *value)
{
	const struct heap_allocation *allocation = &row->listed.allocation;
	bool is_alive = allocation->end == HEAP_END_EXIT || allocation->end == HEAP_END_OPEN;
	dump_put_text(value,
		      is_alive && early_end_has(row->dictionary, row->dictionary->threads[allocation->thread].process)
			      ? EARLY_END_ALIVE
			      : heap_end_words[allocation->end]);
}

/* Rows of a damaged index are good up to the damage; the others come from the table that is made anew. */
struct rows_writing {
	struct dump *dump;
	struct analysis analysis;
	uint32_t next;
};

static int rows_write(void *context, struct diag *diag)
{
	struct rows_writing *writing = context;
	struct dump *dump = writing->dump;
	const struct action_source *source = &writing->analysis.sources[0];
	const struct heap_range range = dump->range;
	const struct heap_scan_plan plan = {range.from_ns,           range.to_ns,    INT64_MAX,
					    PACK_ALL | PACK_DETAILS, source->filter, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	struct column_row *row = &dump->row.listed;
	uint32_t first = writing->next;
	(void)diag;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while (!dump->out->error && (rows = heap_scan_next(&scan)) && opened_table_is_good(source->table)) {
		heap_rows_each (rows, i) {
			*row = column_row_of(source->table, rows, i);
			if (row->id >= first && row->allocation.birth_ns >= range.from_ns &&
			    row->allocation.birth_ns <= range.to_ns)
				dump_write_row(dump);
		}
		first = rows->first + rows->count > first ? rows->first + rows->count : first;
	}
	heap_scan_end(&scan);
	writing->next = first;
	return 0;
}

static void rows_stay(void *context)
{
	(void)context;
}

static int write_allocations(struct dump *dump, struct diag *diag)
{
	struct rows_writing writing = {.dump = dump};
	struct analysis_request request = asking_request(NULL, 1);
	(void)diag;
	for (unsigned i = 0; i < dump->column_count; i++)
		if (dump->listed[i] == column_find(COLUMNS_OF_ALLOCATIONS, COLUMN_END_KIND))
			dump->list_columns[i].get = put_end_kind;
	if (dump->format != REPORT_TEXT)
		asking_be_silent();
	request.opened = &dump->opened;
	request.asked = &dump->options->filter.asked;
	request.without_windows = true;
	int status = asking_open(&writing.analysis, &request);
	status = status ? status : asking_run(&writing.analysis, rows_write, rows_stay, &writing);
	analysis_close(&writing.analysis);
	return status;
}

const struct dump_subject dump_allocations = DUMP_LISTED_SUBJECT(COLUMNS_OF_ALLOCATIONS, write_allocations);
