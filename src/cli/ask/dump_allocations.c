/* SPDX-License-Identifier: MIT */
/* Every block: where and when it began and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/early_end.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/dump.h"
#include "export/export.h"

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

/* From the row `first` on: the number of the next one, when some could not be read, or the number of all. */
static uint32_t write_from(struct dump *dump, const struct heap_table *table, uint32_t first)
{
	const struct heap_scan_plan plan = {dump->range.from_ns,
					    dump->range.to_ns,
					    INT64_MAX,
					    PACK_EVERYTHING,
					    &dump->options->filter.asked.filter,
					    NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	struct column_row *row = &dump->row.listed;
	heap_scan_begin(&scan, table, &plan, NULL);
	while (!dump->out->error && (rows = heap_scan_next(&scan)) && trace_table_is_good(table)) {
		for
			heap_rows_each (rows, i) {
				*row = column_row_of(table, rows, i);
				if (row->id >= first && row->allocation.birth_ns >= dump->range.from_ns &&
				    row->allocation.birth_ns <= dump->range.to_ns)
					dump_write_row(dump);
			}
		first = rows->first + rows->count > first ? rows->first + rows->count : first;
	}
	heap_scan_end(&scan);
	return trace_table_is_good(table) ? table->count : first;
}

/* Rows of a damaged index are good up to the damage; the others come from the table that is made anew. */
static int write_allocations(struct dump *dump, struct diag *diag)
{
	struct heap_table *table;
	char *index_path;
	(void)diag;
	for (unsigned i = 0; i < dump->column_count; i++)
		if (dump->listed[i] == column_find(COLUMNS_OF_ALLOCATIONS, COLUMN_END_KIND))
			dump->list_columns[i].get = put_end_kind;
	if (dump->format != REPORT_TEXT)
		asking_be_silent();
	if (asking_table(&table, dump->trace, dump->path, &index_path) != CLI_OK)
		return CLI_FAILED;
	struct heap_names *names = heap_names_new(dump->trace, dump->symbols, false);
	int status = filter_prepare(&dump->options->filter, table, names);
	uint32_t next = status == CLI_OK ? write_from(dump, table, 0) : 0;
	while (status == CLI_OK && !trace_table_is_good(table)) {
		status = asking_table_mend(&table, dump->trace, dump->path, &index_path);
		if (status == CLI_OK)
			status = filter_prepare(&dump->options->filter, table, names);
		if (status == CLI_OK)
			next = write_from(dump, table, next);
	}
	heap_names_free(names);
	heap_table_free(table);
	free(index_path);
	return status;
}

const struct dump_subject dump_allocations = DUMP_LISTED_SUBJECT(COLUMNS_OF_ALLOCATIONS, write_allocations);
