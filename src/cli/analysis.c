/* SPDX-License-Identifier: MIT */
#include "cli/analysis.h"

#include <stdlib.h>

#include "cli/cli.h"

int analysis_open(struct analysis *analysis, const char *path, bool with_lines)
{
	struct diag diag = {""};
	*analysis = (struct analysis){.path = cli_trace_path(path)};
	if (!analysis->path)
		return CLI_FAILED;
	int error = trace_open(&analysis->trace, analysis->path, &diag);
	if (error) {
		free(analysis->path);
		return cli_fail("%s", diag.text);
	}
	error = heap_table_build(&analysis->table, analysis->trace, -1, 0, &diag);
	if (error) {
		cli_fail("%s: %s", analysis->path, diag.text);
		trace_close(analysis->trace);
		free(analysis->path);
		return CLI_FAILED;
	}
	analysis->symbols = symbols_new();
	analysis->names = heap_names_new(analysis->trace, analysis->symbols, with_lines);
	return CLI_OK;
}

void analysis_close(struct analysis *analysis)
{
	heap_names_free(analysis->names);
	symbols_free(analysis->symbols);
	heap_table_free(analysis->table);
	trace_close(analysis->trace);
	free(analysis->path);
}

struct action_source analysis_source(const struct analysis *analysis, const struct heap_filter *filter, struct heap_cull *cull)
{
	return (struct action_source){.path = analysis->path, .trace = analysis->trace, .table = analysis->table, .filter = filter, .cull = cull,
				      .names = analysis->names};
}

void analysis_source_fini(struct action_source *source)
{
	action_callers_free(source->callers);
	intern_fini(&source->images);
}
