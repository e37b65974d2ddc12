/* SPDX-License-Identifier: MIT */
/* xheap merge: several traces of one machine as one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int set_output(void *context, struct words *words, int number)
{
	(void)number;
	const char *word = options_value(words, "o");
	((struct merge_options *)context)->output = word;
	return word ? 0 : CLI_FAILED;
}

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
		return cli_fail("merge: where to? xheap merge FILE FILE... -o OUT");
	if (options->count < 2)
		return cli_fail("merge: two traces at least: xheap merge FILE FILE... -o OUT");
	return CLI_OK;
}

static int merge_run(int argc, char **argv)
{
	static const struct option table[] = {{"o", set_output, 0}, {"output", set_output, 0}};
	struct merge_options options = {.count = 0};
	struct diag diag = {""};
	struct stat status;
	int result = options_parse(argc, argv, table, sizeof(table) / sizeof(*table), &options, add_path)
			     ? CLI_FAILED
			     : check(&options);
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
	.summary = "several traces of one machine as one, by its clock",
	.run = merge_run,
	.help = "Times count from the beginning of the trace that began first. Traces of different machines, of before "
		"and after a start of\n"
		"the machine, by different clocks, or that are not complete are refused, and so is one that is given "
		"twice.\n\n"
		"  -o OUT          write there\n\n"
		"Example:\n  xheap merge client.xht server.xht -o both.xht\n",
};
