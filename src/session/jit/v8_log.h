/* SPDX-License-Identifier: MIT */
/**
 * V8's log of the code that it compiles (node --log-code --log-source-position), of one isolate: bytes of strangers.
 * Unlike a perf map it says which functions the compiler put into another one, and where. Of its lines these count:
 *
 *     code-creation,KIND,TIER,TIME,ADDRESS,SIZE,NAME[,FUNCTION,...]
 *     code-source-info,ADDRESS,SCRIPT,START,END,POSITIONS,INNER,FUNCTIONS
 *     sfi-move,FUNCTION,FUNCTION                 (code does not move with --perf-basic-prof)
 *
 * FUNCTION is the address of an object that all code of a function has. POSITIONS are those in the code from which on
 * it is of a place in the source: C120O35I2, which is in the function that row 2 of INNER puts in. A row of INNER is
 * F1O20I0: function 1 of FUNCTIONS, called at a place that row 0 has put in; without I by the function itself.
 */
#ifndef XHEAP_SESSION_V8_LOG_H
#define XHEAP_SESSION_V8_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "session/jit/perf_map.h"

/** A text of the log, from its kind to its name; 0 bytes: unknown. */
struct v8_name {
	uint64_t place; /**< its offset */
	uint32_t bytes;
};

/** The functions that the compiler put into a piece of code: the line of the log that has them, and their names. */
struct v8_inner {
	uint64_t place; /**< of the line */
	uint32_t bytes;
	uint32_t first, count; /**< of struct v8_log.inner_names */
};

/** The functions of a log. Zero it to begin. */
struct v8_log {
	struct map functions; /**< FUNCTION: of which name */
	struct v8_name *names, *inner_names;
	struct v8_inner *inner;
	size_t name_count, name_capacity, inner_name_count, inner_name_capacity, inner_count, inner_capacity;
};

/** A line of the log, read. */
struct v8_line {
	enum v8_line_kind { V8_OTHER, V8_CODE, V8_INNER } kind;
	uint64_t start, size; /**< size: of V8_CODE */
	struct v8_name name;  /**< of V8_CODE */
	uint32_t inner;       /**< of V8_INNER: its place in struct v8_log.inner */
};

/** Return whether a file that begins with these bytes is such a log. */
bool v8_log_begins(const char *bytes, size_t size);

/** Take a line, without its end, which lies at that offset of the file. */
void v8_log_take(struct v8_log *log, const char *text, size_t bytes, uint64_t place, struct v8_line *line);

/** Divide the text of a v8_name as perf_map_name() does. */
void v8_log_name(struct jit_name *name, const char *text, size_t bytes);

/** Get the functions that are put in at the offset of a piece of code, by a line of V8_INNER: places in FUNCTIONS, the
    one of the instruction first. Return how many of them there are; at most `most` are given. */
unsigned v8_log_inner(const char *text, size_t bytes, uint64_t offset, uint32_t *functions, unsigned most);

void v8_log_fini(struct v8_log *log);

#endif
