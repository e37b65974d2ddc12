/* SPDX-License-Identifier: MIT */
/** The options that a trace has from its session, or from several. */
#ifndef XHEAP_CLI_INFO_OPTIONS_H
#define XHEAP_CLI_INFO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct json;
struct trace_dictionary;
struct trace_option;

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
