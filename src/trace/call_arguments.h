/* SPDX-License-Identifier: MIT */
/** The arguments of a recorded call, by the names that its function's parameters have (base/events.h). */
#ifndef XHEAP_TRACE_CALL_ARGUMENTS_H
#define XHEAP_TRACE_CALL_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/events.h"

/** A call as a trace has it: columns of an event block, and the handle of its heap (0: none). */
struct call_record {
	enum event_kind kind;
	uint32_t function;
	uint64_t heap, address, previous, size, argument, argument2;
};

/** Return the names of the function's parameters, joined by commas, in the order of dump; "": not known. */
const char *call_parameters(uint32_t function);

/** Return the argument whose parameter's name has these `length` bytes. */
uint64_t call_argument(const struct call_record *call, const char *parameter, size_t length);

/** Return whether that argument is an address or a heap's handle, which people read in hexadecimal. */
bool call_argument_is_address(const char *parameter, size_t length);

#endif
