/* SPDX-License-Identifier: MIT */
/* The list of a scenario's runs, SCENARIO_TAG.csv: a line for each run that has a trace. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/boottrace.h"

void boottrace_runs_path(const struct boottrace *scenario, const char *tag, char path[BOOTTRACE_PATH_BYTES])
{
	snprintf(path, BOOTTRACE_PATH_BYTES, "%s/%s%s%s.csv", scenario->directory, scenario->scenario,
		 tag[0] ? "_" : "", tag);
}

int boottrace_add_run(const struct boottrace *scenario, const struct boottrace_run *run)
{
	char path[BOOTTRACE_PATH_BYTES];
	boottrace_runs_path(scenario, scenario->tag, path);
	FILE *file = fopen(path, run->number == 1 ? "we" : "ae");
	if (!file)
		return cli_fail("cannot write %s: %s", path, strerror(errno));
	if (run->number == 1)
		fputs("run,time_us,status\n", file);
	fprintf(file, "%llu,%llu,%d\n", (unsigned long long)run->number, (unsigned long long)run->time_us, run->status);
	bool is_written = fflush(file) == 0 && !ferror(file);
	fclose(file);
	return is_written ? CLI_OK : cli_fail("cannot write %s: %s", path, strerror(errno));
}

void boottrace_remove_rest(const struct boottrace *scenario)
{
	char path[BOOTTRACE_PATH_BYTES];
	for (uint64_t number = scenario->run_count + 1;; number++) {
		boottrace_trace_path(scenario, scenario->tag, number, path);
		if (unlink(path) != 0)
			return;
	}
}
