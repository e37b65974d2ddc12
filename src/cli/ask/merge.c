/* SPDX-License-Identifier: MIT */
/* xheap merge: several traces of one machine as one. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/option_parser.h"
#include "trace/merge.h"

struct merge_options {
	const char **paths;
	size_t count, capacity;
	const char *output;
};

static int add_path(void *context, char *word)
{
	struct merge_options *options = context;
	memory_grow(options->paths, options->count, options->capacity);
	options->paths[options->count++] = word;
	return 0;
}

static int check(const struct merge_options *options)
{
	if (!options->output)
		return cli_fail("merge: -o OUT is missing: xheap merge FILE FILE... -o OUT");
	if (options->count < 2)
		return cli_fail("merge: two traces are needed at least: xheap merge FILE FILE... -o OUT");
	return CLI_OK;
}

static const struct option merge_rows[] = {
	{"o", .others = "output", .type = VALUE_TEXT, OPTION_AT(struct merge_options, output), .value = "OUT",
	 .help = "write the merged trace to OUT"},
	{.type = VALUE_END},
};
static const struct option_group merge_groups[] = {{merge_rows, 0, false}, {NULL, 0, false}};
static const struct option_grammar grammar = {.command = "merge", .groups = merge_groups, .dashes = "-"};

static int merge_run(int argc, char **argv)
{
	struct merge_options options = {.count = 0};
	struct diag diag = {""};
	struct stat status;
	int result = options_parse(&grammar, argc, argv, &options, add_path, NULL) ? CLI_FAILED : check(&options);
	if (result == CLI_OK && trace_merge(options.output, options.paths, (unsigned)options.count, &diag))
		result = cli_fail("%s", diag.text);
	if (result == CLI_OK && !stat(options.output, &status))
		cli_say("%s: %zu traces, %s", options.output, options.count, text_bytes((uint64_t)status.st_size).data);
	free(options.paths);
	return result;
}

const struct command command_merge = {
	.name = "merge",
	.usage = "FILE FILE... -o OUT",
	.summary = "make one trace of several traces of a machine",
	.run = merge_run,
	.options = &grammar,
	.help = "Times count from the beginning of the trace that began first. Refused are traces of different "
		"machines,\n"
		"of different clocks, from before and after a start of the machine, traces that are not complete, and "
		"a\n"
		"trace that is given twice.\n\n"
		"Example:\n  xheap merge client.xht server.xht -o both.xht\n",
};
