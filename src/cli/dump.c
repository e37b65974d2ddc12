/* SPDX-License-Identifier: MIT */
/*
 * xheap dump: all that is in a trace, row by row: events in the order of their times, or one of the dictionaries.
 *
 * A dump is a list of columns, each with a name and a way to put its value of the current row; text, CSV and JSON (one
 * object per line) are three ways to write the list. Rows are written as they are read, so a dump of any length takes
 * the memory of the blocks that are open.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/early_end.h"
#include "action/losses.h"
#include "action/report.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/analysis.h"
#include "cli/filter_options.h"
#include "cli/formats.h"
#include "match/point_stream.h"
#include "query/resident.h"
#include "query/scan.h"
#include "trace/call_arguments.h"

enum { VALUE_BYTES = 512 };

/* A cell: absent, a number (no quotes in JSON), or text. */
struct value {
	enum { VALUE_ABSENT, CELL_NUMBER, CELL_TEXT } kind;
	const char *text; /* in `room`, or anything that lives until the row is written */
	char room[VALUE_BYTES];
};

struct row;

struct column {
	const char *name;
	void (*get)(const struct row *row, struct value *value);
	int width; /* of text output; negative: aligned to the left; 0: as long as it is */
};

/* Columns take their values from here. */
struct row {
	const struct trace_dictionary *dictionary;
	struct heap_names *names;
	uint64_t seq;
	const struct heap_table *table;     /* allocations */
	const struct heap_rows *rows;       /* some of them, with row `at` */
	struct heap_allocation allocation;  /* this one */
	const struct trace_block *block;    /* events */
	const struct trace_resident *split; /* mappings */
	const uint32_t *order;              /* memory: of resident_order() */
	uint32_t at;                        /* row of the block; else the row of the table or the dictionary */
};

struct dump_options;

struct dump {
	struct dump_options *options;
	const char *path;
	const struct trace *trace;
	struct symbols *symbols;
	const struct column *columns;
	unsigned column_count;
	int format;
	struct heap_range range;
	struct sink *out;
	struct row row;
};

/* ---- values ---- */

/* Decimal digits by hand: this is most of what a dump does. */
static void put_number(struct value *value, int64_t number)
{
	char *at = value->room + 32;
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	*at = 0;
	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	value->kind = CELL_NUMBER;
	value->text = at;
}

static void put_count(struct value *value, uint64_t count)
{
	if (count <= INT64_MAX) {
		put_number(value, (int64_t)count);
		return;
	}
	snprintf(value->room, sizeof(value->room), "%" PRIu64, count);
	value->kind = CELL_NUMBER;
	value->text = value->room;
}

static char *hex_before(char *at, uint64_t number)
{
	do
		*--at = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	*--at = 'x';
	*--at = '0';
	return at;
}

static void put_address(struct value *value, uint64_t address)
{
	value->room[32] = 0;
	value->kind = CELL_TEXT;
	value->text = hex_before(value->room + 32, address);
}

static void put_text(struct value *value, const char *text)
{
	value->kind = CELL_TEXT;
	value->text = text;
}

static void put_known_text(struct value *value, const char *text)
{
	if (text && *text)
		put_text(value, text);
}

static void put_id(struct value *value, uint32_t id)
{
	if (id != TRACE_NONE)
		put_count(value, id);
}

static void put_pid(struct value *value, uint32_t pid)
{
	if (pid)
		put_count(value, pid);
}

/* ---- events ---- */

static const char *const kind_actions[] = {
#define X(id, action, word) action,
	EVENT_KINDS(X)
#undef X
};

static const struct {
	const char *name, *parameters;
} functions[] = {
#define X(id, name, kind, parameters) {name, parameters},
	HEAP_FUNCTIONS(X)
#undef X
};

static void event_seq(const struct row *row, struct value *value)
{
	put_count(value, row->seq);
}
static void event_time(const struct row *row, struct value *value)
{
	put_number(value, row->block->time_ns[row->at]);
}
static void event_process(const struct row *row, struct value *value)
{
	put_id(value, row->dictionary->threads[row->block->thread].process);
}

static void event_tid(const struct row *row, struct value *value)
{
	uint32_t tid = row->dictionary->threads[row->block->thread].tid;
	if (tid != TRACE_TID_NONE)
		put_count(value, tid);
}

static void event_duration(const struct row *row, struct value *value)
{
	if (!(row->block->flags[row->at] & EVENT_NO_DURATION))
		put_number(value, row->block->duration_ns[row->at]);
}

static void event_pid(const struct row *row, struct value *value)
{
	put_pid(value, row->dictionary->processes[row->dictionary->threads[row->block->thread].process].pid);
}

static void event_action(const struct row *row, struct value *value)
{
	unsigned kind = row->block->kind[row->at];
	put_text(value, kind < EVENT_KIND_COUNT ? kind_actions[kind] : "?");
}

static const struct trace_entry *event_entry(const struct row *row)
{
	unsigned entry = row->block->entry[row->at];
	if (row->block->kind[row->at] == EVENT_EARLIER)
		return NULL;
	return entry < row->dictionary->entry_count ? &row->dictionary->entries[entry] : NULL;
}

static void event_function(const struct row *row, struct value *value)
{
	if (event_entry(row))
		put_text(value, event_entry(row)->name);
}

static void event_heap(const struct row *row, struct value *value)
{
	uint32_t heap = row->block->heap[row->at];
	if (heap < row->dictionary->heap_count)
		put_address(value, row->dictionary->heaps[heap].handle);
}

/* An address where there is one: a failed call has none. */
static void event_address(const struct row *row, struct value *value)
{
	if (row->block->address[row->at])
		put_address(value, row->block->address[row->at]);
}

static void event_previous(const struct row *row, struct value *value)
{
	if (row->block->previous[row->at])
		put_address(value, row->block->previous[row->at]);
}

static void event_size(const struct row *row, struct value *value)
{
	if (row->block->kind[row->at] != EVENT_FREE || row->block->size[row->at])
		put_count(value, row->block->size[row->at]);
}

static void event_usable(const struct row *row, struct value *value)
{
	if (row->block->usable[row->at])
		put_count(value, row->block->usable[row->at]);
}

static void event_stack(const struct row *row, struct value *value)
{
	if (!(row->block->flags[row->at] & EVENT_NO_STACK) && row->block->stack[row->at])
		put_count(value, row->block->stack[row->at]);
}

/* 0, the error number of a failed call, or that there is none yet. */
static void event_result(const struct row *row, struct value *value)
{
	if (row->block->flags[row->at] & EVENT_IN_FLIGHT)
		put_text(value, "in-flight");
	else
		put_number(value, row->block->flags[row->at] & EVENT_FAILED ? row->block->result[row->at] : 0);
}

static struct call_record event_call(const struct row *row)
{
	const struct trace_block *block = row->block;
	uint32_t heap = block->heap[row->at];
	return (struct call_record){.kind = block->kind[row->at],
				    .function = event_entry(row)->function,
				    .heap = heap < row->dictionary->heap_count ? row->dictionary->heaps[heap].handle
									       : 0,
				    .address = block->address[row->at],
				    .previous = block->previous[row->at],
				    .size = block->size[row->at],
				    .argument = block->argument[row->at],
				    .argument2 = block->argument2[row->at]};
}

/* "count=4;size=16": pointers in hexadecimal. */
static void event_arguments(const struct row *row, struct value *value)
{
	const struct trace_entry *entry = event_entry(row);
	char *to = value->room;
	if (!entry || entry->function >= FUNCTION_COUNT)
		return;
	const struct call_record call = event_call(row);
	for (const char *at = functions[entry->function].parameters; *at;) {
		size_t length = strcspn(at, ",");
		memcpy(to, at, length);
		to += length;
		*to++ = '=';
		struct value number;
		(call_argument_is_address(at, length) ? put_address : put_count)(&number,
										 call_argument(&call, at, length));
		to = stpcpy(to, number.text);
		at += length + (at[length] == ',');
		if (*at)
			*to++ = ';';
	}
	*to = 0;
	put_text(value, value->room);
}

static const struct column event_columns[] = {
	{"seq", event_seq, 8},
	{"time_ns", event_time, 12},
	{"duration_ns", event_duration, 11},
	{"process", event_process, 7},
	{"pid", event_pid, 7},
	{"tid", event_tid, 7},
	{"action", event_action, -7},
	{"function", event_function, -14},
	{"heap", event_heap, -14},
	{"address", event_address, -14},
	{"previous_address", event_previous, -16},
	{"size", event_size, 9},
	{"usable", event_usable, 9},
	{"args", event_arguments, -28},
	{"result", event_result, -9},
	{"stack_id", event_stack, 8},
};

/* ---- dictionaries ---- */

static const struct trace_node *stack_node(const struct row *row)
{
	return &row->dictionary->nodes[row->at];
}
static const struct trace_frame *stack_address(const struct row *row)
{
	return &row->dictionary->frames[stack_node(row)->frame];
}
static void stack_id(const struct row *row, struct value *value)
{
	put_count(value, row->at);
}
static void stack_parent(const struct row *row, struct value *value)
{
	put_count(value, stack_node(row)->parent);
}

static void stack_image(const struct row *row, struct value *value)
{
	uint32_t image = stack_address(row)->image;
	if (image < row->dictionary->image_count)
		put_text(value, row->dictionary->images[image].path);
}

static void stack_offset(const struct row *row, struct value *value)
{
	put_address(value, stack_address(row)->offset);
}

/* Too long for `room`, a text is kept until the next one. */
static void put_long_text(struct value *value, char *text)
{
	static char *kept;
	free(kept);
	kept = text;
	put_text(value, text);
}

/* The names of this row's code, inlined functions first; its parent's row has those around it. */
static void stack_frame(const struct row *row, struct value *value)
{
	uint32_t end = heap_names_stack(row->names, stack_node(row)->parent);
	put_long_text(value, heap_names_text(row->names, heap_names_stack(row->names, row->at), end));
}

static void stack_text(const struct row *row, struct value *value)
{
	put_long_text(value, heap_names_text(row->names, heap_names_stack(row->names, row->at), 0));
}

/* The last one is as long as the stack is deep, and so is only there when it is asked for. */
static const struct column stack_columns[] = {
	{"stack_id", stack_id, 8},     {"parent_id", stack_parent, 9}, {"image", stack_image, -24},
	{"offset", stack_offset, -12}, {"frame", stack_frame, -24},    {"stack", stack_text, 0},
};

static const struct trace_mapping *image_mapping(const struct row *row)
{
	return &row->dictionary->mappings[row->at];
}
static const struct trace_image *image_file(const struct row *row)
{
	return &row->dictionary->images[image_mapping(row)->image];
}
static void image_id(const struct row *row, struct value *value)
{
	put_id(value, image_mapping(row)->image);
}
static void image_process(const struct row *row, struct value *value)
{
	put_id(value, image_mapping(row)->process);
}
static void image_base(const struct row *row, struct value *value)
{
	put_address(value, image_mapping(row)->base);
}
static void image_end(const struct row *row, struct value *value)
{
	put_address(value, image_mapping(row)->end);
}
static void image_bias(const struct row *row, struct value *value)
{
	put_address(value, image_mapping(row)->bias);
}
static void image_load(const struct row *row, struct value *value)
{
	put_number(value, image_mapping(row)->load_ns);
}
static void image_path(const struct row *row, struct value *value)
{
	put_text(value, image_file(row)->path);
}

static void image_unload(const struct row *row, struct value *value)
{
	if (image_mapping(row)->unload_ns != INT64_MAX)
		put_number(value, image_mapping(row)->unload_ns);
}

static void image_build_id(const struct row *row, struct value *value)
{
	const struct trace_image *image = image_file(row);
	size_t size = image->build_id_size < VALUE_BYTES / 2 ? image->build_id_size : VALUE_BYTES / 2 - 1;
	for (size_t i = 0; i < size; i++)
		snprintf(value->room + 2 * i, 3, "%02x", image->build_id[i]);
	if (size)
		put_text(value, value->room);
}

static const struct column image_columns[] = {
	{"image", image_id, 5},          {"process", image_process, 7},     {"base", image_base, -14},
	{"end", image_end, -14},         {"bias", image_bias, -14},         {"load_ns", image_load, 12},
	{"unload_ns", image_unload, 12}, {"build_id", image_build_id, -40}, {"path", image_path, 0},
};

static const struct trace_process *process_of(const struct row *row)
{
	return &row->dictionary->processes[row->at];
}
static void process_id(const struct row *row, struct value *value)
{
	put_id(value, row->at);
}
static void process_pid(const struct row *row, struct value *value)
{
	put_pid(value, process_of(row)->pid);
}
static void process_parent(const struct row *row, struct value *value)
{
	put_id(value, process_of(row)->parent);
}
static void process_fork(const struct row *row, struct value *value)
{
	put_id(value, process_of(row)->forked_from);
}
static void process_generation(const struct row *row, struct value *value)
{
	put_count(value, process_of(row)->exec_generation);
}
static void process_start(const struct row *row, struct value *value)
{
	put_number(value, process_of(row)->start_ns);
}
static void process_image(const struct row *row, struct value *value)
{
	put_known_text(value, process_of(row)->image);
}
static void process_command(const struct row *row, struct value *value)
{
	put_known_text(value, process_of(row)->command);
}

static void process_end_time(const struct row *row, struct value *value)
{
	if (trace_process_end_is_known(process_of(row)))
		put_number(value, process_of(row)->end_ns);
}

static void process_end(const struct row *row, struct value *value)
{
	static const char *const words[] = {"running", "exit", "signal", "exec", "unknown", "detached"};
	put_text(value, words[process_of(row)->end <= TRACE_END_DETACHED ? process_of(row)->end : TRACE_END_UNKNOWN]);
}

static void process_status(const struct row *row, struct value *value)
{
	if (process_of(row)->end == TRACE_END_EXIT || process_of(row)->end == TRACE_END_SIGNAL)
		put_number(value, process_of(row)->end_status);
}

static void process_note(const struct row *row, struct value *value)
{
	put_known_text(value, process_of(row)->note);
}

static const struct column process_columns[] = {
	{"process", process_id, 7},
	{"pid", process_pid, 7},
	{"parent", process_parent, 7},
	{"forked_from", process_fork, 11},
	{"exec_generation", process_generation, 15},
	{"start_ns", process_start, 12},
	{"end_ns", process_end_time, 12},
	{"end", process_end, -8},
	{"status", process_status, 6},
	{"image", process_image, -20},
	{"command", process_command, -20},
	{"note", process_note, 0},
};

/* ---- writing ---- */

static const struct trace_sample *sample_of(const struct row *row)
{
	return &row->dictionary->samples[row->at];
}
static void sample_process(const struct row *row, struct value *value)
{
	put_id(value, sample_of(row)->process);
}
static void sample_time(const struct row *row, struct value *value)
{
	put_number(value, sample_of(row)->time_ns);
}
static void sample_bytes(const struct row *row, struct value *value)
{
	put_count(value, sample_of(row)->resident_bytes);
}
static void sample_pid(const struct row *row, struct value *value)
{
	put_pid(value, row->dictionary->processes[sample_of(row)->process].pid);
}

/* What the logger read of the mappings at that time; NULL: nothing. */
static const struct trace_resident *split_of(const struct row *row)
{
	return resident_of_sample(row->dictionary, row->order, sample_of(row));
}

#define X(id, key, words) \
	static void sample_##id(const struct row *row, struct value *value) \
	{ \
		const struct trace_resident *split = split_of(row); \
		if (split) \
			put_count(value, split->bytes[TRACE_MAPPING_##id]); \
	}
TRACE_MAPPING_KINDS(X)
#undef X

static void sample_mappings(const struct row *row, struct value *value)
{
	const struct trace_resident *split = split_of(row);
	if (split)
		put_count(value, split->mapping_count);
}

/* Without a split in the trace the columns behind resident_bytes are left out. */
enum { MEMORY_PLAIN_COLUMNS = 4 };
static const struct column memory_columns[] = {{"process", sample_process, 7},
					       {"pid", sample_pid, 7},
					       {"time_ns", sample_time, 14},
					       {"resident_bytes", sample_bytes, 14},
#define X(id, key, words) {key "_bytes", sample_##id, sizeof(key "_bytes") - 1},
					       TRACE_MAPPING_KINDS(X)
#undef X
						       {"mappings", sample_mappings, 8}};

/* A row of the largest mappings; row->at is its place, row->split the split that it is of. */
static const struct trace_resident_part *part_of(const struct row *row)
{
	return &row->dictionary->resident_parts[row->at];
}
static void part_process(const struct row *row, struct value *value)
{
	put_id(value, row->split->process);
}
static void part_pid(const struct row *row, struct value *value)
{
	put_pid(value, row->dictionary->processes[row->split->process].pid);
}
static void part_time(const struct row *row, struct value *value)
{
	put_number(value, row->split->time_ns);
}
static void part_kind(const struct row *row, struct value *value)
{
	put_text(value, resident_kind_key(part_of(row)->kind));
}
static void part_base(const struct row *row, struct value *value)
{
	put_address(value, part_of(row)->base);
}
static void part_end(const struct row *row, struct value *value)
{
	put_address(value, part_of(row)->end);
}
static void part_bytes(const struct row *row, struct value *value)
{
	put_count(value, part_of(row)->resident_bytes);
}
static void part_name(const struct row *row, struct value *value)
{
	put_known_text(value, part_of(row)->name);
}

static const struct column part_columns[] = {{"process", part_process, 7},
					     {"pid", part_pid, 7},
					     {"time_ns", part_time, 14},
					     {"kind", part_kind, -9},
					     {"base", part_base, 14},
					     {"end", part_end, 14},
					     {"resident_bytes", part_bytes, 14},
					     {"name", part_name, 0}};

static const struct heap_allocation *allocation_of(const struct row *row)
{
	return &row->allocation;
}
static const struct heap_details *details_of(const struct row *row)
{
	return &row->rows->details[row->at - row->rows->first];
}
static const struct trace_thread *allocation_thread(const struct row *row)
{
	return &row->dictionary->threads[allocation_of(row)->thread];
}
static void allocation_id(const struct row *row, struct value *value)
{
	put_count(value, row->at);
}
static void allocation_process(const struct row *row, struct value *value)
{
	put_id(value, allocation_thread(row)->process);
}

/* The thread of a pre-existing block is not known. */
static void allocation_tid(const struct row *row, struct value *value)
{
	if (!(allocation_of(row)->flags & HEAP_EARLIER))
		put_count(value, allocation_thread(row)->tid);
}

static void allocation_address(const struct row *row, struct value *value)
{
	put_address(value, details_of(row)->address);
}
static void allocation_size(const struct row *row, struct value *value)
{
	put_count(value, allocation_of(row)->size_bytes);
}
static void allocation_previous(const struct row *row, struct value *value)
{
	put_id(value, details_of(row)->previous);
}

static void allocation_pid(const struct row *row, struct value *value)
{
	put_pid(value, row->dictionary->processes[allocation_thread(row)->process].pid);
}

static void allocation_heap(const struct row *row, struct value *value)
{
	uint32_t heap = allocation_of(row)->heap;
	if (heap < row->dictionary->heap_count)
		put_address(value, row->dictionary->heaps[heap].handle);
}

/* One from before the trace has no beginning. */
static void allocation_birth(const struct row *row, struct value *value)
{
	if (!(allocation_of(row)->flags & HEAP_EARLIER))
		put_number(value, allocation_of(row)->birth_ns);
}

static void allocation_end(const struct row *row, struct value *value)
{
	if (allocation_of(row)->end != HEAP_END_OPEN)
		put_number(value, allocation_of(row)->end_ns);
}

static void allocation_end_kind(const struct row *row, struct value *value)
{
	static const char *const words[] = {"free", "realloc", "destroy", "gap", "conflict", "exit", "open"};
	uint8_t end = allocation_of(row)->end;
	bool is_alive = end == HEAP_END_EXIT || end == HEAP_END_OPEN;
	put_text(value, is_alive && early_end_has(row->dictionary, allocation_thread(row)->process) ? EARLY_END_ALIVE
												    : words[end]);
}

static void allocation_lifetime(const struct row *row, struct value *value)
{
	if (!(allocation_of(row)->flags & HEAP_EARLIER))
		put_number(value, heap_lifetime_ns(allocation_of(row)));
}

static void allocation_free_tid(const struct row *row, struct value *value)
{
	uint32_t thread = details_of(row)->end_thread;
	if (thread != HEAP_NONE)
		put_count(value, row->dictionary->threads[thread].tid);
}

static void put_site(const struct row *row, uint32_t site, struct value *value)
{
	if (site != HEAP_NONE && row->table->sites[site].stack)
		put_count(value, row->table->sites[site].stack);
}

static void allocation_stack(const struct row *row, struct value *value)
{
	put_site(row, allocation_of(row)->site, value);
}
static void allocation_free_stack(const struct row *row, struct value *value)
{
	put_site(row, allocation_of(row)->end_site, value);
}

static const struct column allocation_columns[] = {{"id", allocation_id, 8},
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

static void write_spaces(unsigned count, struct sink *out)
{
	while (count-- > 0)
		sink_put(out, ' ');
}

static void write_text(const struct column *column, const struct value *value, bool is_last, struct sink *out)
{
	const char *text = value->kind == VALUE_ABSENT ? "-" : text_shown(value->text);
	size_t length = strlen(text), width = (size_t)abs(column->width);
	unsigned fill = length < width ? (unsigned)(width - length) : 0;
	if (column->width > 0)
		write_spaces(fill, out);
	sink_bytes(out, text, length);
	if (column->width < 0 && !is_last)
		write_spaces(fill, out);
}

static void write_row(struct dump *dump)
{
	struct sink *out = dump->out;
	bool is_first = true;
	struct value value;
	if (dump->format == REPORT_JSON)
		sink_put(out, '{');
	for (unsigned i = 0; i < dump->column_count; i++) {
		const struct column *column = &dump->columns[i];
		bool is_last = i + 1 == dump->column_count;
		value.kind = VALUE_ABSENT;
		column->get(&dump->row, &value);
		if (dump->format == REPORT_JSON) {
			if (value.kind == VALUE_ABSENT)
				continue;
			sink_text(out, is_first ? "\"" : ", \"");
			sink_text(out, column->name);
			sink_text(out, "\": ");
			if (value.kind == CELL_NUMBER)
				sink_text(out, value.text);
			else
				json_quote(out, value.text);
			is_first = false;
			continue;
		}
		if (i)
			sink_text(out, dump->format == REPORT_CSV ? "," : "  ");
		if (dump->format == REPORT_TEXT)
			write_text(column, &value, is_last, out);
		else if (value.kind == CELL_NUMBER)
			sink_text(out, value.text);
		else if (value.kind == CELL_TEXT)
			csv_field(out, value.text);
	}
	sink_text(out, dump->format == REPORT_JSON ? "}\n" : "\n");
}

static void write_header(struct dump *dump)
{
	for (unsigned i = 0; i < dump->column_count && dump->format != REPORT_JSON; i++) {
		struct value value = {.kind = CELL_TEXT, .text = dump->columns[i].name};
		if (i)
			sink_text(dump->out, dump->format == REPORT_CSV ? "," : "  ");
		if (dump->format == REPORT_CSV)
			sink_text(dump->out, value.text);
		else
			write_text(&dump->columns[i], &value, i + 1 == dump->column_count, dump->out);
	}
	if (dump->format != REPORT_JSON)
		sink_put(dump->out, '\n');
}

/* ---- what can be dumped ---- */

/* Rows keep the numbers that they have without a range: what lies before it is counted. */
static int dump_events(struct dump *dump, struct diag *diag)
{
	struct heap_stream *stream =
		heap_stream_new(dump->trace, HEAP_ORDER_EVENTS, dump->range.from_ns, dump->range.to_ns);
	struct heap_point point;
	int status;
	dump->row.seq = heap_stream_skipped(stream);
	while ((status = heap_stream_next(stream, &point, diag)) > 0 && !dump->out->error) {
		if (point.time_ns > dump->range.to_ns)
			break;
		dump->row.block = point.block;
		dump->row.at = point.row;
		if (point.time_ns >= dump->range.from_ns)
			write_row(dump);
		dump->row.seq++;
	}
	heap_stream_free(stream);
	return status < 0 ? status : 0;
}

static int dump_rows(struct dump *dump, uint32_t first, uint32_t count)
{
	for (dump->row.at = first; dump->row.at < count && !dump->out->error; dump->row.at++)
		write_row(dump);
	return 0;
}

static int dump_stacks(struct dump *dump, struct diag *diag)
{
	(void)diag;
	dump->row.names = heap_names_new(dump->trace, dump->symbols, false);
	int status = dump_rows(dump, 1, dump->row.dictionary->node_count);
	heap_names_free(dump->row.names);
	return status;
}

static int dump_memory(struct dump *dump, struct diag *diag)
{
	(void)diag;
	uint32_t *order = resident_order(dump->row.dictionary);
	dump->row.order = order;
	int status = dump_rows(dump, 0, dump->row.dictionary->sample_count);
	free(order);
	return status;
}

static int dump_mappings(struct dump *dump, struct diag *diag)
{
	const struct trace_dictionary *dictionary = dump->row.dictionary;
	(void)diag;
	for (uint32_t i = 0; i < dictionary->resident_count; i++) {
		const struct trace_resident *split = dump->row.split = &dictionary->residents[i];
		dump_rows(dump, split->first, split->first + split->spread);
	}
	return 0;
}

static int dump_allocations(struct dump *dump, struct diag *diag);

static int dump_images(struct dump *dump, struct diag *diag)
{
	(void)diag;
	return dump_rows(dump, 0, dump->row.dictionary->mapping_count);
}

static int dump_processes(struct dump *dump, struct diag *diag)
{
	(void)diag;
	return dump_rows(dump, 0, dump->row.dictionary->process_count);
}

#define COLUMNS(columns) columns, sizeof(columns) / sizeof(*columns)
static const struct {
	const struct column *columns;
	unsigned count;
	int (*run)(struct dump *dump, struct diag *diag);
} subjects[] = {
	{COLUMNS(event_columns), dump_events},           {COLUMNS(stack_columns), dump_stacks},
	{COLUMNS(image_columns), dump_images},           {COLUMNS(process_columns), dump_processes},
	{COLUMNS(allocation_columns), dump_allocations}, {COLUMNS(memory_columns), dump_memory},
	{COLUMNS(part_columns), dump_mappings},
};
enum {
	SUBJECT_EVENTS,
	SUBJECT_STACKS,
	SUBJECT_IMAGES,
	SUBJECT_PROCESSES,
	SUBJECT_ALLOCATIONS,
	SUBJECT_MEMORY,
	SUBJECT_MAPPINGS
};

/* ---- the command ---- */

struct dump_options {
	struct filter_options filter;
	struct input input;
	int format, subject;
	bool has_whole_stacks;
};

static int set_subject(void *context, struct words *words, int number)
{
	(void)words;
	((struct dump_options *)context)->subject = number;
	return 0;
}

static int set_path(void *context, char *word)
{
	return input_take_path(&((struct dump_options *)context)->input, word);
}

/* From the row `first` on: the number of the next one, when some could not be read, or the number of all. */
static uint32_t write_allocations(struct dump *dump, const struct heap_table *table, uint32_t first)
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
	while (!dump->out->error && (rows = heap_scan_next(&scan)) && analysis_is_good(table)) {
		dump->row.rows = rows;
		for
			heap_rows_each (rows, i) {
				const struct heap_allocation allocation = heap_rows_get(rows, i);
				dump->row.at = rows->first + i;
				dump->row.allocation = allocation;
				if (dump->row.at >= first && allocation.birth_ns >= dump->range.from_ns &&
				    allocation.birth_ns <= dump->range.to_ns)
					write_row(dump);
			}
		first = rows->first + rows->count > first ? rows->first + rows->count : first;
	}
	heap_scan_end(&scan);
	return analysis_is_good(table) ? table->count : first;
}

/* Rows of a damaged index are good up to the damage; the others come from the table that is made anew. */
static int dump_allocations(struct dump *dump, struct diag *diag)
{
	struct heap_table *table;
	char *index_path;
	(void)diag;
	if (dump->format != REPORT_TEXT)
		analysis_be_silent();
	if (analysis_table(&table, dump->trace, dump->path, &index_path) != CLI_OK)
		return CLI_FAILED;
	struct heap_names *names = heap_names_new(dump->trace, dump->symbols, false);
	int status = filter_prepare(&dump->options->filter, table, names);
	uint32_t next = status == CLI_OK ? write_allocations(dump, table, 0) : 0;
	while (status == CLI_OK && !analysis_is_good(table)) {
		status = analysis_table_mend(&table, dump->trace, dump->path, &index_path);
		if (status == CLI_OK)
			status = filter_prepare(&dump->options->filter, table, names);
		if (status == CLI_OK)
			next = write_allocations(dump, table, next);
	}
	heap_names_free(names);
	heap_table_free(table);
	free(index_path);
	return status;
}

static int dump_show(struct dump_options *options, const char *path, const struct trace *trace)
{
	struct diag diag = {""};
	struct cli_output output;
	struct heap_range range = {INT64_MIN, INT64_MAX};
	if (filter_range(&options->filter, trace, &range))
		return CLI_FAILED;
	filter_say_outside(&options->filter, range, trace_dictionary(trace)->duration_ns);
	cli_output_open(&output, options->format == REPORT_TEXT);
	struct dump dump = {.options = options,
			    .path = path,
			    .trace = trace,
			    .symbols = symbols_new(),
			    .columns = subjects[options->subject].columns,
			    .column_count = subjects[options->subject].count,
			    .format = options->format,
			    .range = range,
			    .out = &output.sink,
			    .row = {.dictionary = trace_dictionary(trace)}};
	if (options->subject == SUBJECT_STACKS && !options->has_whole_stacks)
		dump.column_count--;
	if (options->subject == SUBJECT_MEMORY && !dump.row.dictionary->resident_count)
		dump.column_count = MEMORY_PLAIN_COLUMNS;
	if (!dump.row.dictionary->is_complete)
		cli_say("%s is cut at byte %" PRIu64 ": %s", path, dump.row.dictionary->cut_offset,
			dump.row.dictionary->cut_reason);
	early_end_text(cli_stderr(), dump.row.dictionary, "xheap: ");
	if (options->subject == SUBJECT_ALLOCATIONS)
		losses_text_earlier(cli_stderr(), dump.row.dictionary, "xheap: ");
	if (dump.row.dictionary->fold_count &&
	    (options->subject == SUBJECT_EVENTS || options->subject == SUBJECT_ALLOCATIONS))
		cli_say("%s: %s events are folded: blocks that ended among them are not listed; xheap info shows the "
			"time",
			path, text_count(dump.row.dictionary->folded_count).data);
	write_header(&dump);
	int error = subjects[options->subject].run(&dump, &diag);
	symbols_free(dump.symbols);
	int status = cli_output_close(&output);
	/* Above 0: said already. */
	return error > 0 ? error : error ? cli_fail("%s: %s", path, diag.text) : status;
}

static int dump_file(struct dump_options *options)
{
	struct diag diag = {""};
	struct trace *trace;
	char *path = cli_trace_path(options->input.path);
	if (!path)
		return CLI_FAILED;
	int status = trace_open(&trace, path, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	if (status == CLI_OK) {
		status = dump_show(options, path, trace);
		trace_close(trace);
	}
	free(path);
	return status;
}

#define SUBJECT(place) .type = VALUE_TAKEN, .take = set_subject, .number = (place)

static const struct option dump_option_rows[] = {
	{"events", SUBJECT(SUBJECT_EVENTS), .help = "every heap call in the order of time (the default)"},
	{"allocations", SUBJECT(SUBJECT_ALLOCATIONS),
	 .help = "every block: where and when it began and ended, and which call freed it; takes the filters of xheap "
		 "heap"},
	{"stacks", SUBJECT(SUBJECT_STACKS),
	 .help = "the tree of stacks, a row for each frame: events name its stack_id, and parent_id is the row of the "
		 "caller"},
	{"wholeStacks", .type = VALUE_ON, OPTION_AT(struct dump_options, has_whole_stacks),
	 .help = "with -stacks: the text of the whole stack in each row"},
	{"images", SUBJECT(SUBJECT_IMAGES), .help = "which file was mapped where, in which process"},
	{"processes", SUBJECT(SUBJECT_PROCESSES), .help = "processes and how they ended"},
	{"memory", SUBJECT(SUBJECT_MEMORY),
	 .help = "the resident memory of each process, whenever it had changed, and at rising maxima by kind of "
		 "mapping"},
	{"mappings", SUBJECT(SUBJECT_MAPPINGS), .help = "the largest mappings of each process at these maxima"},
	FORMAT_OPTION(struct dump_options, format, report_formats_of_lists),
	{.type = VALUE_END},
};

static const struct option_group dump_groups[] = {
	{dump_option_rows, 0, false},
	{filter_range_rows, offsetof(struct dump_options, filter), false},
	{filter_moment_rows, offsetof(struct dump_options, filter), false},
	{filter_rows, offsetof(struct dump_options, filter), true},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "dump", .groups = dump_groups, .dashes = "-"};

static int dump_run(int argc, char **argv)
{
	struct dump_options options = {.subject = 0};
	filter_options_init(&options.filter, "dump");
	options.filter.asked.filter.nesting = HEAP_NESTING_ALL;
	int status = options_parse(&grammar, argc, argv, &options, set_path, NULL);
	if (!status && options.filter.asked.note_count && options.subject != SUBJECT_ALLOCATIONS)
		status = cli_fail("-%s is for -allocations", options.filter.asked.notes[0].name);
	if (!status && options.has_whole_stacks && options.subject != SUBJECT_STACKS)
		status = cli_fail("-wholeStacks is for -stacks");
	if (!status)
		status = dump_file(&options);
	filter_options_fini(&options.filter);
	return status;
}

const struct command command_dump = {
	.name = "dump",
	.usage = "[FILE] [-events|-allocations|-stacks|-images|-processes|-memory] [OPTIONS]",
	.summary = "print all that a trace holds",
	.run = dump_run,
	.options = &grammar,
	.help = "JSON is one object on each line; a value that is absent has no key.\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap dump xheap.jq.4711.xht -range 0 10ms -format csv\n",
};
