/* SPDX-License-Identifier: MIT */
#include "columns/event_columns.h"

#include <string.h>

#include "base/digits.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

static const char *const actions[] = {
#define X(id, action, word) action,
	EVENT_KINDS(X)
#undef X
};

static inline const struct trace_thread *thread_of(const struct column_row *row)
{
	return &row->dictionary->threads[row->event.thread];
}

static inline uint32_t pid_of(const struct column_row *row)
{
	return row->dictionary->processes[thread_of(row)->process].pid;
}

/* The events of blocks from before an attach are no thread's. */
static inline bool has_thread(const struct column_row *row)
{
	return thread_of(row)->tid != TRACE_TID_NONE;
}

static inline bool has_heap(const struct column_row *row)
{
	return row->event.heap < row->dictionary->heap_count;
}

static inline uint64_t handle_of(const struct column_row *row)
{
	return has_heap(row) ? row->dictionary->heaps[row->event.heap].handle : 0;
}

static inline bool has_function(const struct column_row *row)
{
	return row->event.kind != EVENT_EARLIER && row->event.entry < row->dictionary->entry_count;
}

static inline uint32_t stack_of(const struct column_row *row)
{
	return row->event.flags & EVENT_NO_STACK ? 0 : row->event.stack;
}

static inline bool has_flag(const struct column_row *row, enum event_flag flag)
{
	return row->event.flags & flag;
}

struct call_record column_call(const struct column_row *row)
{
	const struct column_event *event = &row->event;
	return (struct call_record){.kind = event->kind,
				    .function = has_function(row) ? row->dictionary->entries[event->entry].function
								  : FUNCTION_COUNT,
				    .heap = handle_of(row),
				    .address = event->address,
				    .previous = event->previous,
				    .size = event->size,
				    .argument = event->argument,
				    .argument2 = event->argument2};
}

/* "count=4;size=16": pointers in hexadecimal. */
static bool write_arguments(const struct column_row *row, char *to)
{
	const struct call_record call = column_call(row);
	for (const char *at = call_parameters(call.function); *at;) {
		char digits[DIGITS_BYTES + 1] = "", *end = digits + DIGITS_BYTES;
		size_t length = strcspn(at, ",");
		to = mempcpy(to, at, length);
		*to++ = '=';
		to = stpcpy(to, (call_argument_is_address(at, length) ? digits_hex_before : digits_before)(
					end, call_argument(&call, at, length)));
		at += length + (at[length] == ',');
		if (*at)
			*to++ = ';';
	}
	*to = 0;
	return call.function < FUNCTION_COUNT;
}

/* The two functions of a column: its value, and whether there is one, as expressions over `row`. */
#define VALUES(name, value_, is_present_) \
	static inline __attribute__((always_inline)) bool get_##name(const struct column_row *row, uint64_t *value) \
	{ \
		*value = (uint64_t)(value_); \
		return (is_present_); \
	} \
	static void fill_##name(const struct column_rows *given, uint64_t *restrict values, uint8_t *restrict absent) \
	{ \
		const struct column_rows rows = *given; \
		const struct trace_block block = *rows.block; \
		for (uint32_t i = 0; i < rows.count; i++) { \
			uint32_t at = rows.places ? rows.places[i].row : rows.first + i; \
			const struct column_row row = {.dictionary = rows.dictionary, \
						       .id = rows.first_id + i, \
						       .event = column_event_at(&block, at)}; \
			absent[i] = !get_##name(&row, &values[i]); \
		} \
	}
#define ALWAYS true

VALUES(id, row->id, ALWAYS)
VALUES(time, row->event.time_ns, ALWAYS)
VALUES(duration, row->event.duration_ns, !has_flag(row, EVENT_NO_DURATION))
VALUES(process, thread_of(row)->process, ALWAYS)
VALUES(pid, pid_of(row), pid_of(row) != 0)
VALUES(thread, row->event.thread, has_thread(row))
VALUES(tid, thread_of(row)->tid, has_thread(row))
VALUES(action, row->event.kind, ALWAYS)
VALUES(function, row->event.entry, has_function(row))
VALUES(heap, handle_of(row), has_heap(row))
VALUES(heap_id, row->event.heap, has_heap(row))
VALUES(address, row->event.address, row->event.address != 0)
VALUES(previous_address, row->event.previous, row->event.previous != 0)
VALUES(size, row->event.size, row->event.kind != EVENT_FREE || row->event.size)
VALUES(usable, row->event.usable, row->event.usable != 0)
VALUES(argument, row->event.argument, ALWAYS)
VALUES(argument_2, row->event.argument2, ALWAYS)
VALUES(result, has_flag(row, EVENT_FAILED) ? (int64_t)row->event.result : 0, !has_flag(row, EVENT_IN_FLIGHT))
VALUES(flags, row->event.flags, ALWAYS)
VALUES(site, stack_of(row) * (uint64_t)row->dictionary->entry_count + row->event.entry, has_function(row))
VALUES(stack, row->event.stack, row->event.stack && !has_flag(row, EVENT_NO_STACK))

#define OF(name) get_##name, fill_##name

/* clang-format off */
const struct column column_of_events[COLUMN_COUNT] = {
	[COLUMN_ID] = {"seq", TYPE_NUMBER, 8, 0, OF(id),
		.help = "Number of the event in the trace."},
	[COLUMN_TIME] = {"time_ns", TYPE_TIME, 12, PACK_TIMES, OF(time),
		.help = "When the call returned, or a free was entered, in nanoseconds since T = 0."},
	[COLUMN_DURATION] = {"duration_ns", TYPE_TIME, 11, PACK_TIMES, OF(duration),
		.help = "How long the call took, in nanoseconds.", .absent = "not recorded"},
	[COLUMN_PROCESS] = {"process", TYPE_PROCESS, 7, 0, OF(process),
		.help = "Id of the process in the trace."},
	[COLUMN_PID] = {"pid", TYPE_NUMBER, 7, 0, OF(pid),
		.help = "Process id.", .absent = "not known", .bits = 32},
	[COLUMN_THREAD] = {"thread", TYPE_THREAD, 0, 0, OF(thread),
		.help = "Id of the thread in the trace.", .absent = "no thread made the event"},
	[COLUMN_TID] = {"tid", TYPE_NUMBER, 7, 0, OF(tid),
		.help = "Thread id.", .absent = "no thread made the event, as for a block from before the attach",
		.bits = 32},
	[COLUMN_ACTION] = {"action", TYPE_WORD, -7, 0, OF(action),
		.help = "The kind of the event.", .words = actions, .word_count = EVENT_KIND_COUNT},
	[COLUMN_FUNCTION] = {"function", TYPE_FUNCTION, -14, 0, OF(function),
		.help = "The function that was called.", .absent = "a block from before the attach"},
	[COLUMN_HEAP] = {"heap", TYPE_ADDRESS, -14, 0, OF(heap),
		.help = "Handle of the heap.", .absent = "not known"},
	[COLUMN_HEAP_ID] = {"heap_id", TYPE_HEAP, 0, 0, OF(heap_id),
		.help = "Id of the heap in the trace.", .absent = "not known"},
	[COLUMN_ADDRESS] = {"address", TYPE_ADDRESS, -14, PACK_ADDRESSES, OF(address),
		.help = "Address of the block.", .absent = "the call failed"},
	[COLUMN_PREVIOUS_ADDRESS] = {"previous_address", TYPE_ADDRESS, -16, PACK_ADDRESSES, OF(previous_address),
		.help = "Address of the old block of a realloc.", .absent = "none"},
	[COLUMN_SIZE] = {"size", TYPE_BYTES, 9, 0, OF(size),
		.help = "Requested bytes.", .absent = "the event has none"},
	[COLUMN_USABLE] = {"usable", TYPE_BYTES, 9, 0, OF(usable),
		.help = "Usable bytes of the block.", .absent = "not known"},
	[COLUMN_ARGUMENTS] = {"args", TYPE_TEXT, -28, 0, NULL, NULL,
		.help = "The arguments of the call: name=value, joined by ;.",
		.absent = "a block from before the attach, or an unknown function", .text = write_arguments},
	[COLUMN_ARGUMENT] = {"argument", TYPE_NUMBER, 0, 0, OF(argument),
		.help = "Count, alignment or flags of the call; else 0."},
	[COLUMN_ARGUMENT_2] = {"argument_2", TYPE_NUMBER, 0, 0, OF(argument_2),
		.help = "A further argument of the call; else 0."},
	[COLUMN_RESULT] = {"result", TYPE_ERROR, -9, 0, OF(result),
		.help = "0, the error number of a call that failed, or in-flight for a call that had not returned.",
		.absent = "the call had not returned", .absent_word = "in-flight"},
	[COLUMN_FLAGS] = {"flags", TYPE_NUMBER, 0, 0, OF(flags),
		.help = "Bits of enum event_flag.", .bits = 8},
	[COLUMN_SITE] = {"site_id", TYPE_NUMBER, 0, 0, OF(site),
		.help = "Stack and function, as one number: the stack times the trace's functions, and the function.",
		.absent = "a block from before the attach, or an unknown function"},
	[COLUMN_STACK] = {"stack_id", TYPE_STACK, 8, 0, OF(stack),
		.help = "The stack: a stack_id of dump -stacks.", .absent = "not recorded"},
};
/* clang-format on */
