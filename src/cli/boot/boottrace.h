/* SPDX-License-Identifier: MIT */
/** Shared by the files of xheap boottrace: a scenario that is run and recorded several times. */
#ifndef XHEAP_CLI_BOOTTRACE_H
#define XHEAP_CLI_BOOTTRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/option_parser.h"
#include "session/control/options.h"

enum { BOOTTRACE_PATH_BYTES = 4096, BOOTTRACE_SCENARIO_BYTES = 300, BOOTTRACE_UNIT_BYTES = 257 };

/** Of a service; and the word of the unit that goes on after a restart. */
enum { SERVICE_DELAY_MS = 5000 };
#define BOOTTRACE_CONTINUE_WORD "-continue"

/** The first line of a list of runs. */
#define BOOTTRACE_RUNS_HEAD "run,time_us,status\n"

enum boottrace_kind { BOOTTRACE_COMMAND, BOOTTRACE_SERVICE, BOOTTRACE_BOOT };

struct boottrace {
	struct session_options session; /**< options of each recording */
	const char *trace;              /**< -trace */
	const char *result_path, *tag, *before_command, *after_command;
	uint64_t run_count;
	uint32_t delay_ms; /**< -postBootDelay */
	bool wants_remove, is_sure;
	bool was_enabled; /**< the service xheap-autologger, before a boot trace */
	char **command;   /**< of -trace command; ends with NULL */
	enum boottrace_kind kind;
	char scenario[BOOTTRACE_SCENARIO_BYTES];    /**< command, service-UNIT or boot: begins the names of files */
	char unit[BOOTTRACE_UNIT_BYTES];            /**< of -trace service:UNIT */
	char directory[BOOTTRACE_PATH_BYTES - 600]; /**< -resultPath, absolute */
};

/** A run that is done. */
struct boottrace_run {
	uint64_t number;
	uint64_t time_us; /**< how long the scenario took */
	int status;       /**< exit status of the command; 0 of others */
};

/** Write the path of the trace of run `number`: SCENARIO_TAG_N.xht. */
void boottrace_trace_path(const struct boottrace *scenario, const char *tag, uint64_t number,
			  char path[BOOTTRACE_PATH_BYTES]);

/** Write the path of the list of runs: SCENARIO_TAG.csv. */
void boottrace_runs_path(const struct boottrace *scenario, const char *tag, char path[BOOTTRACE_PATH_BYTES]);

/** Run a shell's command and wait. Return its exit status, 128 and the signal's number, or -1 after a message. */
int boottrace_shell(const char *command);

/** Let a signal end the run only after everything is as before; and give back what signals did before. */
void boottrace_signals_take(void);
void boottrace_signals_give_back(void);

/** Return whether a signal asks for the end of the run. */
bool boottrace_is_interrupted(void);

/** Run the scenario once and record it. Return CLI_OK, or CLI_FAILED after a message; an interrupted run may leave the
    message to the caller. */
int boottrace_run_command(const struct boottrace *scenario, struct boottrace_run *run);
int boottrace_run_service(const struct boottrace *scenario, struct boottrace_run *run);

/** Begin with the first restart; go on after a restart; end, and reset everything. CLI_OK, or CLI_FAILED after a
    message. */
int boottrace_boot_begin(struct boottrace *scenario);
int boottrace_boot_continue(void);
int boottrace_remove(void);

/** Write the unit's own name: nginx is nginx.service, and an alias is another unit. Without systemd, write it as it
    is. */
void boottrace_service_name(const char *unit, char *name, size_t size);

/** Remove the image options and end the sessions that runs of services have left. Return CLI_OK, or CLI_FAILED after a
    message. */
int boottrace_service_remove(void);

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

/** Print statistics over the runs of the list, and what differs to the runs of other tags. Return CLI_OK, or CLI_FAILED
    after a message. */
int boottrace_report(const struct boottrace *scenario);

/** Print the report, and run -callBack, after all runs. Return CLI_OK, or CLI_FAILED after a message. */
int boottrace_end(const struct boottrace *scenario);

#endif
