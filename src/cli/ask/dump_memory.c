/* SPDX-License-Identifier: MIT */
/* The resident memory of the processes, and their largest mappings. */
#include <stdlib.h>

#include "cli/ask/dump.h"
#include "cli/ask/dump_rows.h"
#include "query/resident.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static const struct trace_sample *sample_of(const struct dump_row *row)
{
	return &row->dictionary->samples[row->at];
}

DUMP_VALUE(sample_process, dump_put_id, sample_of(row)->process)
DUMP_VALUE(sample_time, dump_put_number, sample_of(row)->time_ns)
DUMP_VALUE(sample_bytes, dump_put_count, sample_of(row)->resident_bytes)
DUMP_VALUE(sample_pid, dump_put_pid, row->dictionary->processes[sample_of(row)->process].pid)

/* What the logger read of the mappings at that time; NULL: nothing. */
static const struct trace_resident *split_of(const struct dump_row *row)
{
	return resident_of_reading(row->dictionary, row->order, sample_of(row)->process, sample_of(row)->time_ns);
}

#define X(id, key, words) \
	static void sample_##id(const struct dump_row *row, struct dump_value *value) \
	{ \
		const struct trace_resident *split = split_of(row); \
		if (split) \
			dump_put_count(value, split->bytes[TRACE_MAPPING_##id]); \
	}
TRACE_MAPPING_KINDS(X)
#undef X

static void sample_mappings(const struct dump_row *row, struct dump_value *value)
{
	const struct trace_resident *split = split_of(row);
	if (split)
		dump_put_count(value, split->mapping_count);
}

static const struct dump_column memory_columns[] = {{"process", sample_process, 7},
						    {"pid", sample_pid, 7},
						    {"time_ns", sample_time, 14},
						    {"resident_bytes", sample_bytes, 14},
#define X(id, key, words) {key "_bytes", sample_##id, sizeof(key "_bytes") - 1},
						    TRACE_MAPPING_KINDS(X)
#undef X
							    {"mappings", sample_mappings, 8}};

/* A row of the largest mappings; row->at is its place, row->split the split that it is of. */
static const struct trace_resident_part *part_of(const struct dump_row *row)
{
	return &row->dictionary->resident_parts[row->at];
}

DUMP_VALUE(part_process, dump_put_id, row->split->process)
DUMP_VALUE(part_pid, dump_put_pid, row->dictionary->processes[row->split->process].pid)
DUMP_VALUE(part_time, dump_put_number, row->split->time_ns)
DUMP_VALUE(part_kind, dump_put_text, resident_kind_key(part_of(row)->kind))
DUMP_VALUE(part_base, dump_put_address, part_of(row)->base)
DUMP_VALUE(part_end, dump_put_address, part_of(row)->end)
DUMP_VALUE(part_bytes, dump_put_count, part_of(row)->resident_bytes)
DUMP_VALUE(part_name, dump_put_known_text, part_of(row)->name)

static const struct dump_column part_columns[] = {{"process", part_process, 7},
						  {"pid", part_pid, 7},
						  {"time_ns", part_time, 14},
						  {"kind", part_kind, -9},
						  {"base", part_base, 14},
						  {"end", part_end, 14},
						  {"resident_bytes", part_bytes, 14},
						  {"name", part_name, 0}};

static int write_memory(struct dump *dump, struct diag *diag)
{
	(void)diag;
	uint32_t *order = resident_order(dump->row.dictionary);
	dump->row.order = order;
	int status = dump_write_rows(dump, 0, dump->row.dictionary->sample_count);
	free(order);
	return status;
}

static int write_mappings(struct dump *dump, struct diag *diag)
{
	const struct trace_dictionary *dictionary = dump->row.dictionary;
	(void)diag;
	for (uint32_t i = 0; i < dictionary->resident_count; i++) {
		const struct trace_resident *split = dump->row.split = &dictionary->residents[i];
		dump_write_rows(dump, split->first, split->first + split->spread);
	}
	return 0;
}

const struct dump_subject dump_memory = DUMP_SUBJECT(memory_columns, write_memory);

const struct dump_subject dump_mappings = DUMP_SUBJECT(part_columns, write_mappings);
