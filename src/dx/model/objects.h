/* SPDX-License-Identifier: MIT */
/** The classes of objects: tables of members with their types, help and getters. */
#ifndef XHEAP_DX_OBJECTS_H
#define XHEAP_DX_OBJECTS_H

#include "columns/column.h"
#include "dx/core/methods.h"
#include "dx/model/debugger.h"

extern const struct dx_class dx_heap_class, dx_call_class, dx_allocation_class, dx_process_class, dx_thread_class,
	dx_module_class, dx_event_class, dx_session_class, dx_session_ttd_class, dx_process_ttd_class, dx_data_class,
	dx_utility_class, dx_debugger_class, dx_state_class, dx_variables_class, dx_heap_row_class, dx_stack_row_class,
	dx_heap_state_class, dx_heap_use_class, dx_peak_class;

/** All classes, for the manual and for completion; ended by NULL. */
extern const struct dx_class *const dx_classes[];

/** Methods of objects, in tables that are ended by a row without a name. */
extern const struct dx_method dx_methods_of_positions[], dx_methods_of_traces[], dx_methods_of_questions[],
	dx_methods_of_peaks[];

/** A row of these, of the objects of a class. */
#define DX_OF(owner, name, arguments, kind, class, call, shown, help) \
	{ \
		name, DX_OF_CLASS, &(owner), arguments, DX_RESULT_KIND, kind, class, NULL, call, shown, help, NULL \
	}

/** A row that is written in the language. */
#define DX_WRITTEN(owner, name, arguments, class, text_, shown, help) \
	{ \
		name, DX_OF_CLASS, &(owner), arguments, DX_RESULT_KIND, DX_SEQUENCE, class, NULL, NULL, shown, help, \
			text_ \
	}

/** An event as an object: the row of its block, and its positions. Members are computed when they are asked for. */
struct dx_event {
	uint64_t number; /**< in the order of dump */
	struct column_event row;
	uint32_t step, start_step; /**< of the point; of the first point of a ReAlloc */
	int64_t signal_start_ns;   /**< of a call inside it; INT64_MAX: none */
	uint32_t signal_start_step;
	struct thread_context context; /**< of its thread; none: not known */
};

/** A process, thread, mapping or heap of the trace by its id. */
struct dx_id {
	uint32_t id;
};

/** Return the sequence of the objects of the class with ids below `count`: of one process, or of all (TRACE_NONE). The
    indices are pids and tids; if is_counted, 0, 1, 2 ..., as those of modules always are. */
struct dx_value dx_ids(struct dx_query *query, const struct dx_class *class, uint32_t count, uint32_t process,
		       bool is_counted);

/** Return a value of a column as one of the language: a number, an address, a text or an object. */
struct dx_value dx_column_value(struct dx_query *query, const struct column *column, uint64_t value);

/** Return an error that says what traces lack, and what they have. */
struct dx_value dx_not_recorded(struct dx_query *query, const char *what);

/** Return an object of an id. */
struct dx_value dx_id_object(struct dx_query *query, const struct dx_class *class, uint32_t id);

static inline uint32_t dx_id_of(const struct dx_value *object)
{
	return ((const struct dx_id *)object->data)->id;
}

#endif
