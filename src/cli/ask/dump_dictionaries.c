/* SPDX-License-Identifier: MIT */
/* The dictionaries of a trace: stacks, images, processes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/digits.h"
#include "cli/ask/dump.h"
#include "cli/ask/dump_rows.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static const struct trace_node *stack_node(const struct dump_row *row)
{
	return &row->dictionary->nodes[row->at];
}
static const struct trace_frame *stack_address(const struct dump_row *row)
{
	return &row->dictionary->frames[stack_node(row)->frame];
}

DUMP_VALUE(stack_id, dump_put_count, row->at)
DUMP_VALUE(stack_parent, dump_put_count, stack_node(row)->parent)

static void stack_image(const struct dump_row *row, struct dump_value *value)
{
	uint32_t image = stack_address(row)->image;
	if (image < row->dictionary->image_count)
		dump_put_text(value, row->dictionary->images[image].path);
}

/* The function of this row's code; the innermost one, if functions are inlined there. */
static const struct heap_address_function *stack_function(const struct dump_row *row)
{
	uint32_t count;
	return heap_names_address(row->names, stack_node(row)->frame, &count);
}

static enum heap_frame_kind stack_frame_kind(const struct dump_row *row)
{
	return heap_frame_kind(heap_names_name(row->names, stack_function(row)->name), false);
}

static bool stack_is_managed(const struct dump_row *row)
{
	return heap_name_is_managed(heap_names_name(row->names, stack_function(row)->name));
}

DUMP_VALUE_IF(stack_offset, !stack_is_managed(row), dump_put_address, trace_frame_address(stack_address(row)))
DUMP_VALUE_IF(stack_kind, stack_frame_kind(row) != HEAP_FRAME_NATIVE, dump_put_text,
	      heap_frame_kinds[stack_frame_kind(row)])
DUMP_VALUE_IF(stack_line, stack_is_managed(row) && stack_function(row)->line, dump_put_count, stack_function(row)->line)

/* Too long for `room`, a text is kept until the next one. */
static void put_long_text(struct dump_value *value, char *text)
{
	static char *kept;
	free(kept);
	kept = text;
	dump_put_text(value, text);
}

/* The names of this row's code, inlined functions first; its parent's row has those around it. */
static void stack_frame(const struct dump_row *row, struct dump_value *value)
{
	uint32_t end = heap_names_stack(row->names, stack_node(row)->parent);
	put_long_text(value, heap_names_text(row->names, heap_names_stack(row->names, row->at), end));
}

static void stack_text(const struct dump_row *row, struct dump_value *value)
{
	put_long_text(value, heap_names_text(row->names, heap_names_stack(row->names, row->at), 0));
}

/* The last one is as long as the stack is deep, and so is only there when it is asked for. */
static const struct dump_column stack_columns[] = {
	{"stack_id", stack_id, 8},     {"parent_id", stack_parent, 9}, {"image", stack_image, -24},
	{"offset", stack_offset, -12}, {"frame", stack_frame, -24},    {"stack", stack_text, 0},
};
static const struct dump_column managed_stack_columns[] = {
	{"stack_id", stack_id, 8},     {"parent_id", stack_parent, 9}, {"image", stack_image, -24},
	{"offset", stack_offset, -12}, {"kind", stack_kind, -6},       {"line", stack_line, 5},
	{"frame", stack_frame, -24},   {"stack", stack_text, 0},
};

static const struct trace_mapping *image_mapping(const struct dump_row *row)
{
	return &row->dictionary->mappings[row->at];
}
static const struct trace_image *image_file(const struct dump_row *row)
{
	return &row->dictionary->images[image_mapping(row)->image];
}

DUMP_VALUE(image_id, dump_put_id, image_mapping(row)->image)
DUMP_VALUE(image_process, dump_put_id, image_mapping(row)->process)
DUMP_VALUE(image_base, dump_put_address, image_mapping(row)->base)
DUMP_VALUE(image_end, dump_put_address, image_mapping(row)->end)
DUMP_VALUE(image_bias, dump_put_address, image_mapping(row)->bias)
DUMP_VALUE(image_load, dump_put_number, image_mapping(row)->load_ns)
DUMP_VALUE(image_path, dump_put_text, image_file(row)->path)
DUMP_VALUE_IF(image_unload, image_mapping(row)->unload_ns != INT64_MAX, dump_put_number, image_mapping(row)->unload_ns)

static void image_build_id(const struct dump_row *row, struct dump_value *value)
{
	const struct trace_image *image = image_file(row);
	size_t size = image->build_id_size < DUMP_VALUE_BYTES / 2 ? image->build_id_size : DUMP_VALUE_BYTES / 2 - 1;
	digits_of_bytes(value->room, image->build_id, size);
	if (size)
		dump_put_text(value, value->room);
}

static const struct dump_column image_columns[] = {
	{"image", image_id, 5},          {"process", image_process, 7},     {"base", image_base, -14},
	{"end", image_end, -14},         {"bias", image_bias, -14},         {"load_ns", image_load, 12},
	{"unload_ns", image_unload, 12}, {"build_id", image_build_id, -40}, {"path", image_path, 0},
};

static const struct trace_process *process_of(const struct dump_row *row)
{
	return &row->dictionary->processes[row->at];
}

DUMP_VALUE(process_id, dump_put_id, row->at)
DUMP_VALUE(process_pid, dump_put_pid, process_of(row)->pid)
DUMP_VALUE(process_parent, dump_put_id, process_of(row)->parent)
DUMP_VALUE(process_fork, dump_put_id, process_of(row)->forked_from)
DUMP_VALUE(process_generation, dump_put_count, process_of(row)->exec_generation)
DUMP_VALUE(process_start, dump_put_number, process_of(row)->start_ns)
DUMP_VALUE(process_image, dump_put_known_text, process_of(row)->image)
DUMP_VALUE(process_command, dump_put_known_text, process_of(row)->command)
DUMP_VALUE_IF(process_end_time, trace_process_end_is_known(process_of(row)), dump_put_number, process_of(row)->end_ns)
DUMP_VALUE(process_end, dump_put_text, trace_end_word(process_of(row)))
DUMP_VALUE_IF(process_status, process_of(row)->end == TRACE_END_EXIT || process_of(row)->end == TRACE_END_SIGNAL,
	      dump_put_number, process_of(row)->end_status)
DUMP_VALUE(process_note, dump_put_known_text, process_of(row)->note)

static const struct dump_column process_columns[] = {
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

static int write_stacks(struct dump *dump, struct diag *diag)
{
	(void)diag;
	dump->row.names = opened_trace_names(dump->opened, false);
	return dump_write_rows(dump, 1, dump->row.dictionary->node_count);
}

static int write_images(struct dump *dump, struct diag *diag)
{
	(void)diag;
	return dump_write_rows(dump, 0, dump->row.dictionary->mapping_count);
}

static int write_processes(struct dump *dump, struct diag *diag)
{
	(void)diag;
	return dump_write_rows(dump, 0, dump->row.dictionary->process_count);
}

const struct dump_subject dump_stacks = DUMP_SUBJECT(stack_columns, write_stacks);
const struct dump_subject dump_managed_stacks = DUMP_SUBJECT(managed_stack_columns, write_stacks);

const struct dump_subject dump_images = DUMP_SUBJECT(image_columns, write_images);

const struct dump_subject dump_processes = DUMP_SUBJECT(process_columns, write_processes);
