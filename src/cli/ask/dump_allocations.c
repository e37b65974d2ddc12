/* SPDX-License-Identifier: MIT */
/* Every block: where and when it began and ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/early_end.h"
#include "action/report/report.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/dump.h"

static const struct heap_allocation *allocation_of(const struct dump_row *row)
{
	return &row->allocation;
}
static const struct heap_details *details_of(const struct dump_row *row)
{
	return &row->rows->details[row->at - row->rows->first];
}
static const struct trace_thread *allocation_thread(const struct dump_row *row)
{
	return &row->dictionary->threads[allocation_of(row)->thread];
}
static void allocation_id(const struct dump_row *row, struct dump_value *value)
{
	dump_put_count(value, row->at);
}
static void allocation_process(const struct dump_row *row, struct dump_value *value)
{
	dump_put_id(value, allocation_thread(row)->process);
}

/* The thread of a pre-existing block is not known. */
static void allocation_tid(const struct dump_row *row, struct dump_value *value)
{
	if (!(allocation_of(row)->flags & HEAP_EARLIER))
		dump_put_count(value, allocation_thread(row)->tid);
}

static void allocation_address(const struct dump_row *row, struct dump_value *value)
{
	dump_put_address(value, details_of(row)->address);
}
static void allocation_size(const struct dump_row *row, struct dump_value *value)
{
	dump_put_count(value, allocation_of(row)->size_bytes);
}
static void allocation_previous(const struct dump_row *row, struct dump_value *value)
{
	dump_put_id(value, details_of(row)->previous);
}

static void allocation_pid(const struct dump_row *row, struct dump_value *value)
{
	dump_put_pid(value, row->dictionary->processes[allocation_thread(row)->process].pid);
}

static void allocation_heap(const struct dump_row *row, struct dump_value *value)
{
	uint32_t heap = allocation_of(row)->heap;
	if (heap < row->dictionary->heap_count)
		dump_put_address(value, row->dictionary->heaps[heap].handle);
}

/* One from before the trace has no beginning. */
static void allocation_birth(const struct dump_row *row, struct dump_value *value)
{
	if (!(allocation_of(row)->flags & HEAP_EARLIER))
		dump_put_number(value, allocation_of(row)->birth_ns);
}

static void allocation_end(const struct dump_row *row, struct dump_value *value)
{
	if (allocation_of(row)->end != HEAP_END_OPEN)
		dump_put_number(value, allocation_of(row)->end_ns);
}

static void allocation_end_kind(const struct dump_row *row, struct dump_value *value)
{
	uint8_t end = allocation_of(row)->end;
	bool is_alive = end == HEAP_END_EXIT || end == HEAP_END_OPEN;
	dump_put_text(value, is_alive && early_end_has(row->dictionary, allocation_thread(row)->process)
				     ? EARLY_END_ALIVE
				     : heap_end_words[end]);
}

static void allocation_lifetime(const struct dump_row *row, struct dump_value *value)
{
	if (!(allocation_of(row)->flags & HEAP_EARLIER))
		dump_put_number(value, heap_lifetime_ns(allocation_of(row)));
}

static void allocation_free_tid(const struct dump_row *row, struct dump_value *value)
{
	uint32_t thread = details_of(row)->end_thread;
	if (thread != HEAP_NONE)
		dump_put_count(value, row->dictionary->threads[thread].tid);
}

static void put_site(const struct dump_row *row, uint32_t site, struct dump_value *value)
{
	if (site != HEAP_NONE && row->table->sites[site].stack)
		dump_put_count(value, row->table->sites[site].stack);
}

static void allocation_stack(const struct dump_row *row, struct dump_value *value)
{
	put_site(row, allocation_of(row)->site, value);
}
static void allocation_free_stack(const struct dump_row *row, struct dump_value *value)
{
	put_site(row, allocation_of(row)->end_site, value);
}

static const struct dump_column allocation_columns[] = {{"id", allocation_id, 8},
							{"process", allocation_process, 7},
							{"pid", allocation_pid, 7},
							{"tid", allocation_tid, 7},
							{"heap", allocation_heap, 14},
							{"address", allocation_address, 14},
							{"size", allocation_size, 10},
							{"birth_ns", allocation_birth, 14},
							{"end_ns", allocation_end, 14},
							{"end_kind", allocation_end_kind, -8},
							{"lifetime_ns", allocation_lifetime, 14},
							{"free_tid", allocation_free_tid, 8},
							{"stack_id", allocation_stack, 8},
							{"free_stack_id", allocation_free_stack, 13},
							{"previous_id", allocation_previous, 11}};

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
	dump->row.table = table;
	heap_scan_begin(&scan, table, &plan, NULL);
	while (!dump->out->error && (rows = heap_scan_next(&scan)) && trace_table_is_good(table)) {
		dump->row.rows = rows;
		for
			heap_rows_each (rows, i) {
				const struct heap_allocation allocation = heap_rows_get(rows, i);
				dump->row.at = rows->first + i;
				dump->row.allocation = allocation;
				if (dump->row.at >= first && allocation.birth_ns >= dump->range.from_ns &&
				    allocation.birth_ns <= dump->range.to_ns)
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

const struct dump_subject dump_allocations = DUMP_SUBJECT(allocation_columns, write_allocations);
