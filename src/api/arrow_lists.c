/* SPDX-License-Identifier: MIT */
/*
 * The lists of a trace as tables: stacks, frames, functions, threads, processes, heaps, images.
 *
 * A code address lies in one function and in those that were inlined into it. Each of these is a frame of its own, with
 * an id of its own, innermost first. A stack has the id of its node in the trace, and the innermost frame of its
 * address. The frames around that one, in the same address, are of further stacks, whose ids are behind the trace's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/arrow_source.h"
#include "base/digits.h"
#include "base/memory.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { BUILD_ID_MOST = 64 };

struct arrow_list;

/* A column of a table. */
struct arrow_list_column {
	const char *name;
	enum arrow_kind kind;
	bool is_nullable, is_long; /* is_long: only where it is named */
	void (*put)(struct arrow_list *list, struct arrow_column *to);
	struct arrow_words *(*words)(const struct trace_dictionary *dictionary); /* of ARROW_WORD */
	const char *help;
};

/* A table: its rows have the numbers from `first` to `count`. */
struct arrow_list_table {
	const struct arrow_list_column *columns;
	size_t column_count;
	bool has_names; /* of code */
	void (*begin)(struct arrow_list *list);
	bool (*advance)(struct arrow_list *list); /* to the next row; false: there is none */
};

struct arrow_list {
	const struct arrow_list_table *table;
	const struct arrow_list_column **wanted;
	const struct trace_dictionary *dictionary;
	struct heap_names *names;
	uint32_t at, count, level; /* the row: its number in the trace's list, and which function of an address */
	bool has_begun;
	/* Of frames and stacks: by frame of the trace, the first of its frames here; one more for the end. */
	uint32_t *first_frames;
	/* Of stacks: whether the row is one of the further ones; the id of the first of these that the node has. */
	bool is_further;
	uint32_t added;
};

#define PUT(name, value) \
	static void put_##name(struct arrow_list *list, struct arrow_column *to) \
	{ \
		arrow_put(to, (uint64_t)(value)); \
	}
#define PUT_IF(name, condition, value) \
	static void put_##name(struct arrow_list *list, struct arrow_column *to) \
	{ \
		if (condition) \
			arrow_put(to, (uint64_t)(value)); \
		else \
			arrow_put_absent(to); \
	}
#define PUT_TEXT(name, value) \
	static void put_##name(struct arrow_list *list, struct arrow_column *to) \
	{ \
		const char *text = (value); \
		arrow_put_text(to, text &&*text ? text : NULL); \
	}

static bool row_advance(struct arrow_list *list)
{
	list->at += list->has_begun;
	list->has_begun = true;
	return list->at < list->count;
}

static struct arrow_words *words_of_images(const struct trace_dictionary *dictionary)
{
	struct arrow_words *words = arrow_words_new(dictionary->image_count);
	for (uint32_t i = 0; i < dictionary->image_count; i++)
		arrow_words_set(words, i, dictionary->images[i].path);
	return words;
}

PUT(at, list->at)

/* ---- frames ---- */

static void addresses_begin(struct arrow_list *list)
{
	uint32_t frames = list->dictionary->frame_count, count;
	uint64_t all = 0;
	list->first_frames = memory_resize(NULL, (size_t)frames + 1, sizeof(*list->first_frames));
	for (uint32_t i = 0; i < frames; i++) {
		list->first_frames[i] = (uint32_t)all;
		heap_names_address(list->names, i, &count);
		all += count;
	}
	list->first_frames[frames] = (uint32_t)all;
	if (all > UINT32_MAX)
		memory_exhausted(0);
}

static uint32_t functions_at(const struct arrow_list *list, uint32_t frame)
{
	return list->first_frames[frame + 1] - list->first_frames[frame];
}

static void frames_begin(struct arrow_list *list)
{
	addresses_begin(list);
	list->count = list->dictionary->frame_count;
}

static bool frame_advance(struct arrow_list *list)
{
	if (list->has_begun && list->level + 1 < functions_at(list, list->at)) {
		list->level++;
		return true;
	}
	list->level = 0;
	return row_advance(list);
}

static const struct trace_frame *address_of(const struct arrow_list *list)
{
	return &list->dictionary->frames[list->at];
}

static const struct heap_address_function *function_of(const struct arrow_list *list)
{
	uint32_t count;
	return heap_names_address(list->names, list->at, &count) + list->level;
}

static const struct heap_name *name_of(const struct arrow_list *list)
{
	return heap_names_name(list->names, function_of(list)->name);
}

static bool has_image(const struct arrow_list *list)
{
	return address_of(list)->image < list->dictionary->image_count;
}

PUT(frame_id, list->first_frames[list->at] + list->level)
PUT_TEXT(frame_name, name_of(list)->text)
PUT_TEXT(frame_symbol, name_of(list)->symbol)
PUT_TEXT(frame_mangled, name_of(list)->mangled)
PUT_IF(frame_image, has_image(list), address_of(list)->image)
PUT_IF(frame_offset, !name_of(list)->is_mark && !heap_name_is_managed(name_of(list)),
       trace_frame_address(address_of(list)))
PUT_TEXT(frame_file, function_of(list)->file)
PUT_IF(frame_line, function_of(list)->line, function_of(list)->line)
PUT(frame_is_inlined, function_of(list)->is_inlined)
PUT_TEXT(frame_kind, heap_frame_kinds[heap_frame_kind(name_of(list), function_of(list)->is_inlined)])

/* clang-format off */
static const struct arrow_list_column frame_columns[] = {
	{"id", ARROW_U32, false, false, put_frame_id, NULL, "Number of the frame: `frame` of stacks."},
	{"name", ARROW_TEXT, true, false, put_frame_name, NULL, "Image and function, or image and offset, or a mark."},
	{"symbol", ARROW_TEXT, true, false, put_frame_symbol, NULL, "Name of the function."},
	{"mangled", ARROW_TEXT, true, false, put_frame_mangled, NULL, "The name as the file has it, if it differs."},
	{"file", ARROW_TEXT, true, false, put_frame_file, NULL, "Source file."},
	{"line", ARROW_U32, true, false, put_frame_line, NULL, "Line in the source file."},
	{"is_inlined", ARROW_TRUTH, false, false, put_frame_is_inlined, NULL,
		"Whether the function is inlined into the next frame."},
	{"image", ARROW_WORD, true, false, put_frame_image, words_of_images, "Path of the image."},
	{"image_id", ARROW_U32, true, false, put_frame_image, NULL, "Number of the image."},
	{"offset", ARROW_U64, true, false, put_frame_offset, NULL,
		"Return address in the image; without an image, in memory."},
	{"kind", ARROW_TEXT, false, false, put_frame_kind, NULL,
		"native, inlined (a native function in the next frame) or python."},
};
/* clang-format on */

/* ---- stacks ---- */

static uint32_t functions_of_node(const struct arrow_list *list)
{
	return functions_at(list, list->dictionary->nodes[list->at].frame);
}

static void stacks_begin(struct arrow_list *list)
{
	const struct trace_dictionary *dictionary = list->dictionary;
	uint64_t all = dictionary->node_count;
	addresses_begin(list);
	for (uint32_t i = 1; i < dictionary->node_count; i++)
		all += functions_at(list, dictionary->nodes[i].frame) - 1;
	if (all > UINT32_MAX)
		memory_exhausted(0);
	/* Node 0 is no stack. */
	list->at = 1;
	list->count = list->added = dictionary->node_count;
}

/* First all nodes, then the further functions at their addresses. */
static bool stack_advance(struct arrow_list *list)
{
	if (!list->is_further) {
		list->added += list->has_begun ? functions_of_node(list) - 1 : 0;
		if (row_advance(list))
			return true;
		list->is_further = true;
		list->at = 1;
		list->added = list->count;
	}
	while (list->at < list->count) {
		if (++list->level < functions_of_node(list))
			return true;
		list->added += functions_of_node(list) - 1;
		list->at++;
		list->level = 0;
	}
	return false;
}

/* The id of the stack around this one. */
static uint32_t parent_of(const struct arrow_list *list)
{
	return list->level + 1 < functions_of_node(list) ? list->added + list->level
							 : list->dictionary->nodes[list->at].parent;
}

PUT(stack_id, list->level ? list->added + list->level - 1 : list->at)
PUT_IF(stack_parent, parent_of(list), parent_of(list))
PUT(stack_frame, list->first_frames[list->dictionary->nodes[list->at].frame] + list->level)

static void put_stack_text(struct arrow_list *list, struct arrow_column *to)
{
	uint32_t node = heap_names_stack(list->names, list->at);
	for (uint32_t i = 0; i < list->level; i++)
		node = heap_names_frame(list->names, node)->parent;
	char *text = heap_names_text(list->names, node, 0);
	arrow_put_text(to, text);
	free(text);
}

/* clang-format off */
static const struct arrow_list_column stack_columns[] = {
	{"id", ARROW_U32, false, false, put_stack_id, NULL, "Number of the stack: a `stack_id` of other tables."},
	{"parent", ARROW_U32, true, false, put_stack_parent, NULL,
		"The stack of the callers; none: this frame is the outermost."},
	{"frame", ARROW_U32, false, false, put_stack_frame, NULL, "The innermost frame."},
	{"stack", ARROW_LONG_TEXT, false, true, put_stack_text, NULL, "All frames, innermost first, joined by ;."},
};
/* clang-format on */

/* ---- functions, threads, processes, heaps, images ---- */

static const struct trace_entry *entry_of(const struct arrow_list *list)
{
	return &list->dictionary->entries[list->at];
}

PUT_TEXT(entry_name, entry_of(list)->name)
PUT_IF(entry_image, entry_of(list)->image < list->dictionary->image_count, entry_of(list)->image)

static const struct trace_thread *thread_of(const struct arrow_list *list)
{
	return &list->dictionary->threads[list->at];
}

static uint32_t pid_of(const struct arrow_list *list, uint32_t process)
{
	return list->dictionary->processes[process].pid;
}

PUT(thread_process, thread_of(list)->process)
PUT_IF(thread_pid, pid_of(list, thread_of(list)->process), pid_of(list, thread_of(list)->process))
PUT_IF(thread_tid, thread_of(list)->tid != TRACE_TID_NONE, thread_of(list)->tid)
PUT_TEXT(thread_name, thread_of(list)->name)
PUT(thread_start, thread_of(list)->start_ns)
PUT(thread_end, thread_of(list)->end_ns)

static const struct trace_process *process_of(const struct arrow_list *list)
{
	return &list->dictionary->processes[list->at];
}

PUT_IF(process_pid, process_of(list)->pid, process_of(list)->pid)
PUT_IF(process_parent, process_of(list)->parent != TRACE_NONE, process_of(list)->parent)
PUT_IF(process_fork, process_of(list)->forked_from != TRACE_NONE, process_of(list)->forked_from)
PUT(process_generation, process_of(list)->exec_generation)
PUT(process_start, process_of(list)->start_ns)
PUT_IF(process_end_time, trace_process_end_is_known(process_of(list)), process_of(list)->end_ns)
PUT_TEXT(process_end, trace_end_word(process_of(list)))
PUT_IF(process_status, process_of(list)->end == TRACE_END_EXIT || process_of(list)->end == TRACE_END_SIGNAL,
       process_of(list)->end_status)
PUT_TEXT(process_image, process_of(list)->image)
PUT_TEXT(process_command, process_of(list)->command)
PUT_TEXT(process_note, process_of(list)->note)

static const struct trace_heap *heap_of(const struct arrow_list *list)
{
	return &list->dictionary->heaps[list->at];
}

PUT(heap_process, heap_of(list)->process)
PUT(heap_handle, heap_of(list)->handle)
PUT_TEXT(heap_name, heap_of(list)->name)

PUT_TEXT(image_path, list->dictionary->images[list->at].path)

static void put_image_build_id(struct arrow_list *list, struct arrow_column *to)
{
	const struct trace_image *image = &list->dictionary->images[list->at];
	char text[2 * BUILD_ID_MOST + 1];
	const size_t size = image->build_id_size < BUILD_ID_MOST ? image->build_id_size : BUILD_ID_MOST;
	digits_of_bytes(text, image->build_id, size);
	arrow_put_text(to, *text ? text : NULL);
}

/* clang-format off */
static const struct arrow_list_column function_columns[] = {
	{"id", ARROW_U32, false, false, put_at, NULL, "Number of the function: a `function_id` of other tables."},
	{"name", ARROW_TEXT, true, false, put_entry_name, NULL, "Its symbol."},
	{"image", ARROW_WORD, true, false, put_entry_image, words_of_images, "Path of the image that defines it."},
	{"image_id", ARROW_U32, true, false, put_entry_image, NULL, "Number of the image."},
}, thread_columns[] = {
	{"id", ARROW_U32, false, false, put_at, NULL, "Number of the thread: a `thread_id` of other tables."},
	{"thread", ARROW_WORD, false, false, put_at, arrow_words_of_threads, "Its label, as in other tables."},
	{"process", ARROW_U32, false, false, put_thread_process, NULL, "Number of the process."},
	{"pid", ARROW_U32, true, false, put_thread_pid, NULL, "Process id."},
	{"tid", ARROW_U32, true, false, put_thread_tid, NULL, "Thread id."},
	{"name", ARROW_TEXT, true, false, put_thread_name, NULL, "Name of the thread."},
	{"start_ns", ARROW_I64, false, false, put_thread_start, NULL, "Its first event, in nanoseconds since T = 0."},
	{"end_ns", ARROW_I64, false, false, put_thread_end, NULL, "Its last event, in nanoseconds since T = 0."},
}, process_columns[] = {
	{"id", ARROW_U32, false, false, put_at, NULL, "Number of the process: `process` of other tables."},
	{"pid", ARROW_U32, true, false, put_process_pid, NULL, "Process id."},
	{"parent", ARROW_U32, true, false, put_process_parent, NULL, "Number of the parent."},
	{"forked_from", ARROW_U32, true, false, put_process_fork, NULL,
		"Number of the process whose heap it inherited."},
	{"exec_generation", ARROW_U32, false, false, put_process_generation, NULL,
		"0 for the first image of the pid, 1 after one exec, and so on."},
	{"start_ns", ARROW_I64, false, false, put_process_start, NULL, "When it began, in nanoseconds since T = 0."},
	{"end_ns", ARROW_I64, true, false, put_process_end_time, NULL, "When it ended, in nanoseconds since T = 0."},
	{"end", ARROW_TEXT, false, false, put_process_end, NULL, "How it ended, or running."},
	{"status", ARROW_I32, true, false, put_process_status, NULL, "Exit status or number of the signal."},
	{"image", ARROW_TEXT, true, false, put_process_image, NULL, "Path of the executed file."},
	{"command", ARROW_TEXT, true, false, put_process_command, NULL, "Command line."},
	{"note", ARROW_TEXT, true, false, put_process_note, NULL, "Why it could not be recorded."},
}, heap_columns[] = {
	{"id", ARROW_U32, false, false, put_at, NULL, "Number of the heap: a `heap_id` of other tables."},
	{"process", ARROW_U32, false, false, put_heap_process, NULL, "Number of the process."},
	{"handle", ARROW_U64, false, false, put_heap_handle, NULL, "Handle of the heap: `heap` of other tables."},
	{"name", ARROW_TEXT, true, false, put_heap_name, NULL, "Name of the heap."},
}, image_columns[] = {
	{"id", ARROW_U32, false, false, put_at, NULL, "Number of the image: an `image_id` of other tables."},
	{"path", ARROW_TEXT, true, false, put_image_path, NULL, "Path of the file."},
	{"build_id", ARROW_TEXT, true, false, put_image_build_id, NULL, "Its build-id in hexadecimal digits."},
};
/* clang-format on */

#define BEGIN(name, list_count) \
	static void name##_begin(struct arrow_list *list) \
	{ \
		list->count = list->dictionary->list_count; \
	}
BEGIN(functions, entry_count)
BEGIN(threads, thread_count)
BEGIN(processes, process_count)
BEGIN(heaps, heap_count)
BEGIN(images, image_count)

/* ---- the source ---- */

#define TABLE(columns, has_names, begin, advance) \
	{ \
		columns, sizeof(columns) / sizeof(*(columns)), has_names, begin, advance \
	}
static const struct arrow_list_table tables[XHEAP_TABLE_COUNT] = {
	[XHEAP_TABLE_STACK] = TABLE(stack_columns, true, stacks_begin, stack_advance),
	[XHEAP_TABLE_FRAME] = TABLE(frame_columns, true, frames_begin, frame_advance),
	[XHEAP_TABLE_FUNCTION] = TABLE(function_columns, false, functions_begin, row_advance),
	[XHEAP_TABLE_THREAD] = TABLE(thread_columns, false, threads_begin, row_advance),
	[XHEAP_TABLE_PROCESS] = TABLE(process_columns, false, processes_begin, row_advance),
	[XHEAP_TABLE_HEAP] = TABLE(heap_columns, false, heaps_begin, row_advance),
	[XHEAP_TABLE_IMAGE] = TABLE(image_columns, false, images_begin, row_advance),
};

/* One row at a time: texts end a batch early. */
static int64_t list_next(struct arrow_source *source, struct arrow_column *columns, uint32_t room, struct diag *diag)
{
	struct arrow_list *list = source->state;
	(void)room;
	(void)diag;
	if (!list->table->advance(list))
		return 0;
	for (uint32_t i = 0; i < source->field_count; i++)
		list->wanted[i]->put(list, &columns[i]);
	return 1;
}

static void list_end(struct arrow_source *source)
{
	struct arrow_list *list = source->state;
	free(list->wanted);
	free(list->first_frames);
	free(list);
}

static void column_add(struct arrow_source *source, const struct arrow_list_column *column)
{
	struct arrow_list *list = source->state;
	list->wanted[source->field_count] = column;
	struct arrow_field *field = arrow_field_add(source, column->name, column->kind);
	field->is_nullable = column->is_nullable;
	field->help = column->help;
	field->words = column->words ? column->words(list->dictionary) : NULL;
}

static const struct arrow_list_column *column_named(const struct arrow_list_table *table, const char *name)
{
	for (size_t i = 0; i < table->column_count; i++)
		if (!strcmp(table->columns[i].name, name))
			return &table->columns[i];
	return NULL;
}

static int columns_add(struct arrow_source *source, const xheap_query *query, struct diag *diag)
{
	struct arrow_list *list = source->state;
	const struct arrow_list_table *table = list->table;
	size_t most = query->column_count ? query->column_count : table->column_count;
	list->wanted = memory_zeroed(most, sizeof(*list->wanted));
	for (size_t i = 0; i < query->column_count; i++) {
		const struct arrow_list_column *column = column_named(table, query->columns[i]);
		if (!column)
			return diag_fail(diag, EINVAL, "xheap_query: the table has no column '%s'", query->columns[i]);
		column_add(source, column);
	}
	for (size_t i = 0; !query->column_count && i < table->column_count; i++)
		if (!table->columns[i].is_long)
			column_add(source, &table->columns[i]);
	return 0;
}

int arrow_lists_begin(struct arrow_source *source, const xheap_query *query, struct diag *diag)
{
	struct arrow_list *list = memory_zeroed(1, sizeof(*list));
	source->state = list;
	source->next = list_next;
	source->end = list_end;
	list->table = &tables[query->table];
	list->dictionary = trace_dictionary(source->trace->trace);
	source->needs_lock = list->table->has_names;
	if (query->filter)
		return diag_fail(diag, EINVAL, "xheap_query: only allocations and events are filtered");
	int error = columns_add(source, query, diag);
	if (!error && list->table->has_names)
		error = api_trace_names(source->trace, false, &list->names, diag);
	if (!error)
		list->table->begin(list);
	return error;
}
