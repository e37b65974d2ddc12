/* SPDX-License-Identifier: MIT */
/** What a thread works for, as OpenTelemetry names it: a span of a trace across services. Freestanding. */
#ifndef XHEAP_BASE_THREAD_CONTEXT_H
#define XHEAP_BASE_THREAD_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	THREAD_CONTEXT_TRACE_BYTES = 16,
	THREAD_CONTEXT_SPAN_BYTES = 8,
	THREAD_CONTEXT_DIGITS_MAX = 2 * THREAD_CONTEXT_TRACE_BYTES
};

/** The ids of the trace and of the span, byte by byte. All 0: none. */
struct thread_context {
	uint64_t trace_id[THREAD_CONTEXT_TRACE_BYTES / 8], span_id;
};
_Static_assert(sizeof(struct thread_context) == THREAD_CONTEXT_TRACE_BYTES + THREAD_CONTEXT_SPAN_BYTES, "no padding");

/** From an event of a block on, its thread had this context. */
struct context_change {
	uint32_t event; /**< its number in the block */
	struct thread_context context;
};

/** How a thread comes to the pointer to its context (hook/context_symbol.h, recorder/context_record.c). */
enum context_access {
	CONTEXT_ACCESS_NONE,
	CONTEXT_ACCESS_PROGRAM,    /**< at a constant offset from the thread pointer */
	CONTEXT_ACCESS_OFFSET,     /**< a word of the image has the offset from the thread pointer */
	CONTEXT_ACCESS_DESCRIPTOR, /**< a TLS descriptor: the second word is that offset, or the address of an index */
	CONTEXT_ACCESS_INDEX,      /**< a word of the image has the number of its module */
	CONTEXT_ACCESS_COUNT
};

/** Bytes of a row in a thread's table of modules, by C library. */
enum { CONTEXT_MUSL_ROW = 8, CONTEXT_GLIBC_ROW = 16 };

/** Return whether two contexts are the same. */
static inline bool thread_context_is_same(const struct thread_context *a, const struct thread_context *b)
{
	return a->trace_id[0] == b->trace_id[0] && a->trace_id[1] == b->trace_id[1] && a->span_id == b->span_id;
}

/** Return whether the context names nothing. */
static inline bool thread_context_is_none(const struct thread_context *context)
{
	return !(context->trace_id[0] | context->trace_id[1] | context->span_id);
}

#endif
