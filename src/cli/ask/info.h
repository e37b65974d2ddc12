/* SPDX-License-Identifier: MIT */
/** xheap info: the facts about a trace, which it writes as text or as JSON. */
#ifndef XHEAP_CLI_INFO_H
#define XHEAP_CLI_INFO_H

#include <stdint.h>

#include "base/text_width.h"
#include "query/resident.h"
#include "table/table.h"

struct trace_dictionary;

/** Facts about a trace, counted from the headers of its blocks. */
struct info {
	const char *path;
	const struct trace_dictionary *dictionary;
	struct heap_table *table; /**< only if a process was forked: what the child inherited takes matching */
	uint64_t *process_events;
	uint32_t *process_threads;
	struct resident *residents; /**< by process; NULL: the trace does not have resident memory by kind of mapping */
	struct text_layout layout;
};

/** The words of the kinds of events, by kind. */
extern const char *const info_kind_words[];

#endif
