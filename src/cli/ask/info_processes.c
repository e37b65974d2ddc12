/* SPDX-License-Identifier: MIT */
#include "cli/ask/info_processes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/ends.h"
#include "base/list_field.h"
#include "base/text.h"
#include "cli/ask/info.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- fields ---- */

/* The greatest number says that it is not known. */
struct process_row {
	const struct info *info;
	uint32_t id;
	struct trace_process process;
	uint32_t threads;
	uint64_t end_ns, events, inherited_count, inherited_bytes;
	struct text how; /* it ended */
};

static struct process_row process_row(const struct info *info, uint32_t id)
{
	assert(id < info->dictionary->process_count);
	struct process_row row = {.info = info,
				  .id = id,
				  .process = info->dictionary->processes[id],
				  .threads = UINT32_MAX,
				  .events = UINT64_MAX,
				  .inherited_count = UINT64_MAX,
				  .inherited_bytes = UINT64_MAX};
	row.how = ends_text(&row.process);
	row.end_ns = trace_process_end_is_known(&row.process) ? (uint64_t)row.process.end_ns : UINT64_MAX;
	if (!trace_process_is_untraced(&row.process)) {
		row.threads = info->process_threads[id];
		row.events = info->process_events[id];
	}
	if (info->table && row.process.forked_from != TRACE_NONE) {
		row.inherited_count = info->table->processes[id].inherited_count;
		row.inherited_bytes = info->table->processes[id].inherited_bytes;
	}
	return row;
}

static const char *command(const void *record)
{
	const struct trace_process *process = &((const struct process_row *)record)->process;
	return *process->command ? process->command : process->image;
}

static void end_json(struct json *json, const void *record)
{
	const struct process_row *row = record;
	ends_json(json, row->info->dictionary, row->id);
}

#define AT(kind, member) FIELD(kind, struct process_row, member)
/* docs/schema/info.json $defs/process, but end, status, signal, core_dumped, end_cause, memory_kills, resident,
   memory_limits */
static const struct list_field process_fields[] = {
	{">id", "id", AT(ID, id)},
	{">pid", "pid", AT(ID, process.pid), .may_be_unset = true},
	{">parent", "parent", AT(ID, process.parent), .may_be_none = true, .rank = 4},
	{NULL, "forked_from", AT(ID, process.forked_from), .may_be_none = true},
	{NULL, "exec_generation", AT(COUNT, process.exec_generation)},
	{NULL, "image", AT(TEXT, process.image), .may_be_unset = true},
	{NULL, "command", AT(TEXT, process.command), .may_be_unset = true},
	{">start", "start_us", AT(TIME, process.start_ns), .rank = 5},
	{">end", "end_us", AT(TIME, end_ns), .may_be_none = true, .rank = 6},
	{"how", NULL, AT(CHARS, how.data), .rank = 3, .json = end_json},
	{NULL, "note", AT(TEXT, process.note), .may_be_unset = true},
	{">threads", "threads", AT(COUNT, threads), .may_be_none = true, .rank = 7},
	{">events", "events", AT(COUNT, events), .may_be_none = true, .rank = 1},
	{NULL, "inherited_count", AT(COUNT, inherited_count), .may_be_none = true},
	{">inherited", "inherited_bytes", AT(BYTES, inherited_bytes), .may_be_none = true, .rank = 8},
	{"command", NULL, .kind = FIELD_WORD, .word = command, .may_be_unset = true, .may_be_cut = true},
	{0},
};
#undef AT

/* ---- for people ---- */

/* Why a process is not traced, beneath its row. */
static void note_put(struct grid *grid, const char *note)
{
	struct sink lines;
	sink_to_memory(&lines);
	text_wrap(&lines, arena_format(&grid->arena, "        %s", text_shown(note)), &grid->layout);
	char *text = sink_take(&lines, NULL);
	grid_detail(grid, text);
	free(text);
}

/* What is known of its end beside the signal. */
static void cause_put(struct grid *grid, const struct trace_dictionary *dictionary, uint32_t process)
{
	struct sink out;
	sink_to_memory(&out);
	bool is_known = ends_explain(dictionary, process, "", &out);
	char *text = sink_take(&out, NULL);
	if (is_known)
		note_put(grid, text);
	free(text);
}

void info_processes_text(const struct info *info, struct sink *out)
{
	struct grid grid = {.layout = info->layout};
	list_field_columns(&grid, process_fields);
	for (uint32_t i = 0; i < info->dictionary->process_count; i++) {
		const struct process_row row = process_row(info, i);
		list_field_row(&grid, process_fields, &row);
		if (trace_process_is_untraced(&row.process))
			note_put(&grid, row.process.note);
		else
			cause_put(&grid, info->dictionary, i);
	}
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

/* Each process where its resident memory was largest. Kinds that no process has are left out. */
void info_residents_text(const struct info *info, struct sink *out)
{
	enum { FIXED = 4 };
	static const char *const fixed[FIXED] = {">id", ">resident", ">at", ">read"};
	const char *titles[GRID_COLUMNS_MAX];
	unsigned kind_of[GRID_COLUMNS_MAX], columns = FIXED;
	struct grid grid = {.layout = info->layout};
	memcpy(titles, fixed, sizeof(fixed));
	for (unsigned kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++) {
		bool has_any = false;
		for (uint32_t i = 0; i < info->dictionary->process_count; i++)
			has_any |= info->residents[i].split && info->residents[i].split->bytes[kind];
		if (!has_any)
			continue;
		kind_of[columns] = kind;
		titles[columns++] = arena_format(&grid.arena, ">%s", resident_kind_key(kind));
	}
	grid_columns(&grid, columns, titles);
	for (unsigned i = 2; i < columns; i++)
		grid.rank[i] = i < FIXED ? columns : i;
	for (uint32_t i = 0; i < info->dictionary->process_count; i++) {
		const struct resident *resident = &info->residents[i];
		if (!resident->largest)
			continue;
		grid_row(&grid);
		grid_cell(&grid, arena_format(&grid.arena, "%" PRIu32, i));
		grid_cell(&grid, text_bytes(resident->largest->resident_bytes).data);
		grid_cell(&grid, text_duration(resident->largest->time_ns).data);
		grid_cell(&grid, resident->split ? text_bytes(resident->bytes).data : "-");
		for (unsigned column = FIXED; column < columns; column++)
			grid_cell(&grid,
				  resident->split ? text_bytes(resident->split->bytes[kind_of[column]]).data : "-");
	}
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

/* ---- JSON ---- */

/* The largest sample of a process, and the largest one that was read by kind of mapping. */
static void resident_put(struct json *json, const struct resident *resident)
{
	char key[64];
	if (!resident->largest)
		return;
	json_begin_object(json, "resident");
	json_count(json, "max_bytes", resident->largest->resident_bytes);
	json_time(json, "max_at_us", resident->largest->time_ns);
	if (resident->split) {
		json_count(json, "read_bytes", resident->bytes);
		json_time(json, "read_at_us", resident->split->time_ns);
		json_count(json, "mappings", resident->split->mapping_count);
		for (unsigned kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++) {
			snprintf(key, sizeof(key), "%s_bytes", resident_kind_key(kind));
			json_count(json, key, resident->split->bytes[kind]);
		}
	}
	json_end_object(json);
}

/* The limits of a process's memory; only those that there are. */
static void limits_put(struct json *json, const struct trace_dictionary *dictionary, uint32_t process)
{
	const struct trace_limit *limit = resident_limit(dictionary, process);
	if (!limit)
		return;
	const struct {
		const char *key;
		uint64_t bytes;
	} rows[] = {{"address_space_bytes", limit->address_space_bytes},
		    {"data_bytes", limit->data_bytes},
		    {"cgroup_bytes", limit->cgroup_bytes},
		    {"machine_bytes", limit->machine_bytes}};
	json_begin_object(json, "memory_limits");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].bytes != TRACE_LIMIT_NONE)
			json_count(json, rows[i].key, rows[i].bytes);
	json_end_object(json);
}

void info_processes_json(const struct info *info, struct json *json)
{
	json_begin_array(json, "processes");
	for (uint32_t i = 0; i < info->dictionary->process_count; i++) {
		const struct process_row row = process_row(info, i);
		json_begin_object(json, NULL);
		list_field_json(json, process_fields, &row);
		if (info->residents)
			resident_put(json, &info->residents[i]);
		limits_put(json, info->dictionary, i);
		json_end_object(json);
	}
	json_end_array(json);
}
