/* SPDX-License-Identifier: MIT */
/** The classes of objects: tables of members with their types, help and getters. */
#ifndef XHEAP_DX_OBJECTS_H
#define XHEAP_DX_OBJECTS_H

#include "dx/core/methods.h"
#include "columns/column.h"
#include "dx/model/debugger.h"

extern const struct dx_class dx_heap_class, dx_call_class, dx_allocation_class, dx_process_class, dx_thread_class,
	dx_module_class, dx_event_class, dx_session_class, dx_session_ttd_class, dx_process_ttd_class, dx_data_class,
	dx_utility_class, dx_debugger_class, dx_state_class, dx_variables_class, dx_heap_row_class, dx_stack_row_class,
	dx_heap_state_class, dx_heap_use_class;

/** All classes, for the manual and for completion; ended by NULL. */
extern const struct dx_class *const dx_classes[];

/** Methods of objects, in tables that are ended by a row without a name. */
extern const struct dx_method dx_methods_of_positions[], dx_methods_of_traces[], dx_methods_of_questions[];

/** An event as an object: the row of its block, and its positions. Members are computed when they are asked for. */
struct dx_event {
	uint64_t number; /**< in the order of dump */
	struct column_event row;
	uint32_t step, start_step; /**< of the point; of the first point of a ReAlloc */
	int64_t signal_start_ns;   /**< of a call inside it; INT64_MAX: none */
	uint32_t signal_start_step;
};

/** A process, thread, mapping or heap of the trace by its id. */
struct dx_id {
	uint32_t id;
};

/** Return the sequence of events of one process, or of all (TRACE_NONE). with_nested: also those of heaps that lie in
    others. */
struct dx_value dx_events(struct dx_query *query, uint32_t process, bool with_nested, int column);

/** Return whether the sequence is Heap() of all processes; set *with_nested. */
bool dx_events_are_all(const struct dx_sequence *sequence, bool *with_nested);
/** Return whether the sequence is Data.Allocations() of all processes. */
bool dx_blocks_are_all(const struct dx_sequence *sequence);

/** Read the trace's events from the start, without a query: the model of dump and steps. */
struct dx_event_reader;
struct dx_event_reader *dx_event_reader_new(const struct trace *trace);
/** Set the next event of the eight actions; 1, 0 at the end, or a negative errno with the reason in `diag`. */
int dx_event_reader_next(struct dx_event_reader *reader, struct dx_event *event, struct diag *diag);
void dx_event_reader_free(struct dx_event_reader *reader);

/** Find the event that has the point with this ordinal. The points around it are read, and kept for later searches.
    False: no event has it, such as HEAP_NONE. */
bool dx_event_find(struct dx_query *query, uint32_t point, struct dx_event *event);

/** Return an event's positions. */
struct dx_value dx_event_start(const struct dx_event *event);
struct dx_value dx_event_end(const struct dx_event *event);

/** Return the flags word of an event, and whether it has one. */
bool dx_event_flags(struct dx_query *query, const struct dx_event *event, uint64_t *flags);

/** Return the frames of a stack as a text, with the allocation function as frame 0 unless `entry` is TRACE_NONE. */
const char *dx_stack_text(struct dx_query *query, uint32_t stack, uint32_t entry);

/** Return the sequence of the objects of the class with ids below `count`: of one process, or of all (TRACE_NONE). The
    indices are pids and tids; if is_counted, 0, 1, 2 ..., as those of modules always are. */
struct dx_value dx_ids(struct dx_query *query, const struct dx_class *class, uint32_t count, uint32_t process,
		       bool is_counted);

/** Calls("image!function", ...), over the calls of a process, or of all. */
void dx_calls(struct dx_query *query, struct dx_method_call *call, struct dx_value *result);

/** Set the collection of the heaps of a process. */
void dx_heap_uses(struct dx_query *query, uint32_t process, struct dx_value *value);

/** Set the collection of the threads and modules of a process that came and went. */
void dx_life_events(struct dx_query *query, uint32_t process, struct dx_value *value);

/** Return a value of a column as one of the language: a number, an address, a text or an object. */
struct dx_value dx_column_value(struct dx_query *query, const struct column *column, uint64_t value);

/** Return an object of an id. */
struct dx_value dx_id_object(struct dx_query *query, const struct dx_class *class, uint32_t id);

static inline uint32_t dx_id_of(const struct dx_value *object)
{
	return ((const struct dx_id *)object->data)->id;
}

#endif
