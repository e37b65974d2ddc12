/* SPDX-License-Identifier: MIT */
#include "trace/call_arguments.h"

#include <string.h>

const char *call_parameters(uint32_t function)
{
	static const char *const parameters[] = {
#define X(id, name, kind, parameters) parameters,
		HEAP_FUNCTIONS(X)
#undef X
	};
	return function < FUNCTION_COUNT ? parameters[function] : "";
}

/* The trace has sizes as bytes in all; calloc was given bytes per element. */
static uint64_t size_argument(const struct call_record *call)
{
	/* If nothing or too much was asked for, the trace has the size of one element instead. */
	bool is_whole = call->argument && call->size && call->size != UINT64_MAX;
	return !function_is_counted(call->function) ? call->size
	       : is_whole                           ? call->size / call->argument
						    : call->argument2;
}

uint64_t call_argument(const struct call_record *call, const char *parameter, size_t length)
{
	if (!strncmp(parameter, "heap", length))
		return call->heap;
	if (!strncmp(parameter, "pointer", length))
		return call->kind == EVENT_REALLOC                               ? call->previous
		       : call->kind == EVENT_FREE || call->kind == EVENT_PROTECT ? call->address
										 : 0;
	if (!strncmp(parameter, "size", length))
		return size_argument(call);
	if (!strncmp(parameter, "reserve", length))
		return call->size;
	if (!strncmp(parameter, "commit", length) || !strncmp(parameter, "memptr", length))
		return call->argument2;
	return call->argument;
}

bool call_argument_is_address(const char *parameter, size_t length)
{
	static const char *const names[] = {"heap", "pointer", "memptr", "base"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(parameter, names[i], length))
			return true;
	return false;
}
