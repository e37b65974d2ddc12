/* SPDX-License-Identifier: MIT */
#include "dx/core/query.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

void dx_query_init(struct dx_query *query, struct dx_session *session, size_t limit_bytes,
		   const volatile sig_atomic_t *is_interrupted)
{
	*query = (struct dx_query){.session = session, .is_interrupted = is_interrupted, .stop_column = -1};
	query->budget.limit_bytes = limit_bytes;
	dx_arena_init(&query->whole, &query->budget);
	query->arena = &query->whole;
}

void dx_query_fini(struct dx_query *query)
{
	assert(!query->depth && query->arena == &query->whole);
	dx_arena_fini(&query->whole);
	free(query->limits);
}

void dx_stop(struct dx_query *query, int column, const char *format, ...)
{
	va_list arguments;
	if (query->is_stopped)
		return;
	va_start(arguments, format);
	vsnprintf(query->stop_text, sizeof(query->stop_text), format, arguments);
	va_end(arguments);
	query->is_stopped = true;
	query->stop_column = column;
}

void dx_note(struct dx_query *query, const char *format, ...)
{
	va_list arguments;
	if (query->lambda_depth || *query->note)
		return;
	va_start(arguments, format);
	vsnprintf(query->note, sizeof(query->note), format, arguments);
	va_end(arguments);
}

bool dx_step(struct dx_query *query, const char *name, int column)
{
	query->steps++;
	if (query->is_interrupted && *query->is_interrupted)
		dx_stop(query, -1, "interrupted");
	if (query->steps_max && query->steps > query->steps_max)
		dx_stop(query, column, "%s: more than %llu steps", name, (unsigned long long)query->steps_max);
	if (query->budget.is_exceeded)
		dx_stop(query, column, "%s: more than the %zu MiB of memory that -memory allows are needed", name,
			query->budget.limit_bytes >> 20);
	return !query->is_stopped;
}

bool dx_enter(struct dx_query *query)
{
	if (++query->depth > DX_DEPTH_MAX)
		dx_stop(query, -1, "the evaluation is nested too deep: %d levels", DX_DEPTH_MAX);
	return !query->is_stopped;
}

void dx_leave(struct dx_query *query)
{
	assert(query->depth > 0);
	query->depth--;
}

const char *dx_name_of_parts(const char *name)
{
	return !strcasecmp(name, "Stack") ? "Frames" : !strcasecmp(name, "FreeStack") ? "FreeFrames" : NULL;
}

bool dx_elements(struct dx_query *query, const struct dx_value *value, struct dx_value *sequence)
{
	*sequence = *value;
	if (value->kind == DX_SEQUENCE)
		return true;
	if (value->kind != DX_OBJECT || !value->class->elements)
		return false;
	value->class->elements(query, value, sequence);
	assert(sequence->kind != DX_SEQUENCE || sequence->sequence);
	return sequence->kind == DX_SEQUENCE;
}

void dx_ahead_pass(struct dx_query *query, struct dx_ahead *ahead)
{
	ahead->query = query;
	ahead->next++;
	query->ahead = ahead;
}

void dx_ahead_end(struct dx_ahead *ahead)
{
	if (ahead->query && ahead->query->ahead == ahead)
		ahead->query->ahead = NULL;
}
