/* SPDX-License-Identifier: MIT */
/** xheap info: the facts about a trace, and their two outputs. */
#ifndef XHEAP_CLI_INFO_H
#define XHEAP_CLI_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/sink.h"
#include "base/text_width.h"
#include "query/resident.h"
#include "table/table.h"

struct trace_dictionary;
struct trace_option;

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

/** Write the facts as JSON (docs/schema/info.json), and for people. */
void info_json(const struct info *info, struct sink *out);
void info_text(const struct info *info, struct sink *out);

/** Write the processes as rows; where their resident memory was largest, by kind of mapping; both as an array. */
void info_processes_text(const struct info *info, struct sink *out);
void info_residents_text(const struct info *info, struct sink *out);
void info_processes_json(const struct info *info, struct json *json);

/** The words of the kinds of events, by kind. */
extern const char *const info_kind_words[];

/* ---- info_options.c ---- */

/** An option of a trace. One that was merged or appended has those of several recordings. */
struct info_option {
	const struct trace_option *option;
	bool is_repeated; /**< an earlier one has the same name and value */
	bool is_last;     /**< no later one has the same name */
};

/** Return the options, in their order. The caller frees them. */
struct info_option *info_options_list(const struct trace_dictionary *dictionary);

/** Write the options as keys of an open object, each name once. */
void info_options_json(struct json *json, const struct trace_dictionary *dictionary);

/** A process in which inactive code of the recording was mapped when it ended. */
struct inactive_process {
	int pid;
	uint64_t bytes;
	uint32_t threads;
	const char *command;
};

/** Read it from an option. Return false if the option names none. */
bool inactive_read(struct inactive_process *inactive, const struct trace_option *option);

#endif
