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

#endif
