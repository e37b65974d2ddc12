/* SPDX-License-Identifier: MIT */
/** The list of a scenario's runs, SCENARIO_TAG.csv: a line for each run that has a trace. */
#ifndef XHEAP_CLI_BOOTTRACE_RUNS_H
#define XHEAP_CLI_BOOTTRACE_RUNS_H

#include <stdint.h>

#include "cli/boot/boottrace.h"

/** Write the path of the trace of run `number`: SCENARIO_TAG_N.xht. */
void boottrace_trace_path(const struct boottrace *scenario, const char *tag, uint64_t number,
			  char path[BOOTTRACE_PATH_BYTES]);

/** Write the path of the list of runs: SCENARIO_TAG.csv. */
void boottrace_runs_path(const struct boottrace *scenario, const char *tag, char path[BOOTTRACE_PATH_BYTES]);

/** Lock the list of runs: another boottrace cannot replace the traces of this tag. Return a descriptor for the two
    functions below, or -1 after a message. */
int boottrace_runs_lock(const struct boottrace *scenario);
/** Empty the list, before the first trace of an earlier time is replaced. */
void boottrace_runs_begin(int lock);
/** Unlock the list. An empty one is removed. */
void boottrace_runs_unlock(const struct boottrace *scenario, int lock);

/** Add a run to the list of runs, or begin a new list with run 1. Return CLI_OK, or CLI_FAILED after a message. */
int boottrace_add_run(const struct boottrace *scenario, const struct boottrace_run *run);

/** Remove the traces of an earlier time that had more runs of the tag. */
void boottrace_remove_rest(const struct boottrace *scenario);

#endif
