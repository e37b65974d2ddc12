/* SPDX-License-Identifier: MIT */
#include "cli/ask/info_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/ask/info.h"
#include "trace/option_names.h"
#include "trace/trace.h"

bool inactive_read(struct inactive_process *inactive, const struct trace_option *option)
{
	int command = 0;
	if (strcmp(option->name, TRACE_OPTION_INACTIVE) != 0 ||
	    sscanf(option->value, TRACE_INACTIVE_SCAN, &inactive->pid, &inactive->bytes, &inactive->threads,
		   &command) != 3)
		return false;
	inactive->command = option->value + command;
	return true;
}

/* Options that have keys of their own. */
static bool is_shown_elsewhere(const char *option)
{
	return !strcmp(option, TRACE_OPTION_EARLIER_MISSING) || !strcmp(option, TRACE_OPTION_UNHOOKED) ||
	       !strcmp(option, TRACE_OPTION_UNTRACED_EXECS) || !strcmp(option, TRACE_OPTION_DAMAGED) ||
	       !strcmp(option, TRACE_OPTION_LIMITED) || !strcmp(option, TRACE_OPTION_UNFINISHED) ||
	       !strcmp(option, TRACE_OPTION_INACTIVE) || !strcmp(option, TRACE_OPTION_TRIGGERED);
}

/* By name, and in their order among those of one name. */
static int compare_names(const void *one, const void *other)
{
	const struct info_option *const *left = one, *const *right = other;
	int order = strcmp((*left)->option->name, (*right)->option->name);
	return order ? order : *left < *right ? -1 : *left > *right;
}

static int compare_values(const void *one, const void *other)
{
	const struct info_option *const *left = one, *const *right = other;
	int order = strcmp((*left)->option->name, (*right)->option->name);
	order = order ? order : strcmp((*left)->option->value, (*right)->option->value);
	return order ? order : *left < *right ? -1 : *left > *right;
}

/* Return pointers to the options, by name. The caller frees them. */
static struct info_option **options_sorted(struct info_option *options, uint32_t count,
					   int (*compare)(const void *, const void *))
{
	struct info_option **sorted = memory_zeroed(count, sizeof(struct info_option *));
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &options[i];
	if (count)
		qsort(sorted, count, sizeof(struct info_option *), compare);
	return sorted;
}

static bool has_name_of(const struct info_option *one, const struct info_option *other)
{
	return !strcmp(one->option->name, other->option->name);
}

static bool has_value_of(const struct info_option *one, const struct info_option *other)
{
	return !strcmp(one->option->value, other->option->value);
}

struct info_option *info_options_list(const struct trace_dictionary *dictionary)
{
	uint32_t count = dictionary->option_count;
	struct info_option *options = memory_zeroed(count, sizeof(*options));
	for (uint32_t i = 0; i < count; i++)
		options[i].option = &dictionary->options[i];
	struct info_option **sorted = options_sorted(options, count, compare_names);
	for (uint32_t i = 0; i < count; i++)
		sorted[i]->is_last = i + 1 == count || !has_name_of(sorted[i], sorted[i + 1]);
	free(sorted);
	sorted = options_sorted(options, count, compare_values);
	for (uint32_t i = 1; i < count; i++)
		sorted[i]->is_repeated =
			has_name_of(sorted[i], sorted[i - 1]) && has_value_of(sorted[i], sorted[i - 1]);
	free(sorted);
	return options;
}

/* The values of one name that differ from the last one; the options have this name. */
static void json_other_values(struct json *json, struct info_option *const *options, uint32_t count, bool *has_any)
{
	const struct info_option *last = options[count - 1];
	bool has_name = false;
	for (uint32_t i = 0; i + 1 < count; i++) {
		if (options[i]->is_repeated || has_value_of(options[i], last))
			continue;
		if (!*has_any)
			json_begin_object(json, "other_options");
		if (!has_name)
			json_begin_array(json, last->option->name);
		*has_any = has_name = true;
		json_text(json, NULL, options[i]->option->value);
	}
	if (has_name)
		json_end_array(json);
}

static void json_others(struct json *json, struct info_option *options, uint32_t count)
{
	struct info_option **sorted = options_sorted(options, count, compare_names);
	bool has_any = false;
	for (uint32_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && has_name_of(sorted[first], sorted[end]);)
			end++;
		if (!is_shown_elsewhere(sorted[first]->option->name))
			json_other_values(json, sorted + first, end - first, &has_any);
	}
	if (has_any)
		json_end_object(json);
	free(sorted);
}

void info_options_json(struct json *json, const struct trace_dictionary *dictionary)
{
	struct info_option *options = info_options_list(dictionary);
	json_begin_object(json, "options");
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (options[i].is_last && !is_shown_elsewhere(options[i].option->name))
			json_text(json, options[i].option->name, options[i].option->value);
	json_end_object(json);
	json_others(json, options, dictionary->option_count);
	free(options);
}
