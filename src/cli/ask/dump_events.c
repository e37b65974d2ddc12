/* SPDX-License-Identifier: MIT */
/* Every heap call, in the order of time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/ask/dump.h"
#include "match/point_stream.h"
#include "trace/call_arguments.h"

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

static void event_seq(const struct dump_row *row, struct dump_value *value)
{
	dump_put_count(value, row->seq);
}
static void event_time(const struct dump_row *row, struct dump_value *value)
{
	dump_put_number(value, row->block->time_ns[row->at]);
}
static void event_process(const struct dump_row *row, struct dump_value *value)
{
	dump_put_id(value, row->dictionary->threads[row->block->thread].process);
}

static void event_tid(const struct dump_row *row, struct dump_value *value)
{
	uint32_t tid = row->dictionary->threads[row->block->thread].tid;
	if (tid != TRACE_TID_NONE)
		dump_put_count(value, tid);
}

static void event_duration(const struct dump_row *row, struct dump_value *value)
{
	if (!(row->block->flags[row->at] & EVENT_NO_DURATION))
		dump_put_number(value, row->block->duration_ns[row->at]);
}

static void event_pid(const struct dump_row *row, struct dump_value *value)
{
	dump_put_pid(value, row->dictionary->processes[row->dictionary->threads[row->block->thread].process].pid);
}

static void event_action(const struct dump_row *row, struct dump_value *value)
{
	unsigned kind = row->block->kind[row->at];
	dump_put_text(value, kind < EVENT_KIND_COUNT ? kind_actions[kind] : "?");
}

static const struct trace_entry *event_entry(const struct dump_row *row)
{
	unsigned entry = row->block->entry[row->at];
	if (row->block->kind[row->at] == EVENT_EARLIER)
		return NULL;
	return entry < row->dictionary->entry_count ? &row->dictionary->entries[entry] : NULL;
}

static void event_function(const struct dump_row *row, struct dump_value *value)
{
	if (event_entry(row))
		dump_put_text(value, event_entry(row)->name);
}

static void event_heap(const struct dump_row *row, struct dump_value *value)
{
	uint32_t heap = row->block->heap[row->at];
	if (heap < row->dictionary->heap_count)
		dump_put_address(value, row->dictionary->heaps[heap].handle);
}

/* An address where there is one: a failed call has none. */
static void event_address(const struct dump_row *row, struct dump_value *value)
{
	if (row->block->address[row->at])
		dump_put_address(value, row->block->address[row->at]);
}

static void event_previous(const struct dump_row *row, struct dump_value *value)
{
	if (row->block->previous[row->at])
		dump_put_address(value, row->block->previous[row->at]);
}

static void event_size(const struct dump_row *row, struct dump_value *value)
{
	if (row->block->kind[row->at] != EVENT_FREE || row->block->size[row->at])
		dump_put_count(value, row->block->size[row->at]);
}

static void event_usable(const struct dump_row *row, struct dump_value *value)
{
	if (row->block->usable[row->at])
		dump_put_count(value, row->block->usable[row->at]);
}

static void event_stack(const struct dump_row *row, struct dump_value *value)
{
	if (!(row->block->flags[row->at] & EVENT_NO_STACK) && row->block->stack[row->at])
		dump_put_count(value, row->block->stack[row->at]);
}

/* 0, the error number of a failed call, or that there is none yet. */
static void event_result(const struct dump_row *row, struct dump_value *value)
{
	if (row->block->flags[row->at] & EVENT_IN_FLIGHT)
		dump_put_text(value, "in-flight");
	else
		dump_put_number(value, row->block->flags[row->at] & EVENT_FAILED ? row->block->result[row->at] : 0);
}

static struct call_record event_call(const struct dump_row *row)
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
static void event_arguments(const struct dump_row *row, struct dump_value *value)
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
		struct dump_value number;
		(call_argument_is_address(at, length) ? dump_put_address
						      : dump_put_count)(&number, call_argument(&call, at, length));
		to = stpcpy(to, number.text);
		at += length + (at[length] == ',');
		if (*at)
			*to++ = ';';
	}
	*to = 0;
	dump_put_text(value, value->room);
}

static const struct dump_column event_columns[] = {
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

/* Rows keep the numbers that they have without a range: what lies before it is counted. */
static int write_events(struct dump *dump, struct diag *diag)
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
			dump_write_row(dump);
		dump->row.seq++;
	}
	heap_stream_free(stream);
	return status < 0 ? status : 0;
}

const struct dump_subject dump_events = DUMP_SUBJECT(event_columns, write_events);
