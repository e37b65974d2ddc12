/* SPDX-License-Identifier: MIT */
/* xheap boottrace: a scenario that is run and recorded several times. boottrace_command.c runs commands,
   boottrace_service.c starts services, boottrace_boot.c restarts the machine, boottrace_report.c compares the runs. */
#include "cli/boot/boottrace.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_place.h"
#include "base/text.h"
#include "cli/boot/boottrace_boot.h"
#include "cli/boot/boottrace_command.h"
#include "cli/boot/boottrace_report.h"
#include "cli/boot/boottrace_runs.h"
#include "cli/boot/boottrace_service.h"
#include "cli/record/record.h"
#include "cli/record/record_files.h"
#include "session/control/option_rows.h"

enum { RUNS_MAX = 1000, BOOT_DELAY_MS = 120000, DELAY_MS_MAX = 24 * 3600 * 1000 };

/* ---- running ---- */

/* Before traces of an earlier time are replaced: the command may be mistyped. -preTraceCmd may make it. */
static int check_command(const struct boottrace *scenario)
{
	static struct record record;
	record.command = scenario->command;
	int status = record_find_program(&record);
	return status == CLI_OK ? record_check_program(&record) : status;
}

static int run_once(const struct boottrace *scenario, struct boottrace_run *run, int lock)
{
	if (scenario->before_command) {
		int status = boottrace_shell(scenario->before_command);
		if (status)
			return cli_fail("boottrace: -preTraceCmd ended with status %d before run %llu", status,
					(unsigned long long)run->number);
	}
	if (scenario->kind == BOOTTRACE_COMMAND && check_command(scenario) != CLI_OK)
		return CLI_FAILED;
	if (run->number == 1)
		boottrace_runs_begin(lock);
	boottrace_signals_take();
	int status = scenario->kind == BOOTTRACE_SERVICE ? boottrace_run_service(scenario, run)
							 : boottrace_run_command(scenario, run);
	boottrace_signals_give_back();
	return boottrace_is_interrupted()
		       ? cli_fail("boottrace: run %llu was interrupted; the runs before have their traces",
				  (unsigned long long)run->number)
		       : status;
}

/* Make the runs of a list that is locked. */
static int run_listed(const struct boottrace *scenario, int lock)
{
	int status = CLI_OK;
	for (uint64_t number = 1; number <= scenario->run_count && status == CLI_OK; number++) {
		struct boottrace_run run = {.number = number};
		status = run_once(scenario, &run, lock);
		if (status == CLI_OK)
			status = boottrace_add_run(scenario, &run);
		if (status == CLI_OK && run.status)
			cli_say("run %llu ended with status %d", (unsigned long long)number, run.status);
	}
	if (status == CLI_OK)
		boottrace_remove_rest(scenario);
	return status;
}

static int run_all(const struct boottrace *scenario)
{
	int lock = boottrace_runs_lock(scenario);
	if (lock < 0)
		return CLI_FAILED;
	int status = run_listed(scenario, lock);
	if (status == CLI_OK)
		status = boottrace_end(scenario);
	boottrace_runs_unlock(scenario, lock);
	return status;
}

/* ---- the command line ---- */

/* Documented options that have no meaning here, with the reason. */
enum documented { FLAGS, STANDBY, PREPARATION, WINDOWS, MERGE };
static const char *const foreign_reasons[] = {
	[FLAGS] = "xheap records heap calls only; -stackwalk KINDS chooses those with stacks",
	[STANDBY] = "hibernation and standby are not traced: heaps survive them",
	[PREPARATION] = "Linux is not trained by earlier boots",
	[WINDOWS] = "xheap opens no windows; messages go to standard error",
	[MERGE] = "a trace is one file from the beginning",
};

#define AT(member) OPTION_AT(struct boottrace, member)

static int refuse(void *context, struct words *words, int number)
{
	(void)context, (void)words;
	return cli_fail("boottrace: this documented option has no meaning here: %s", foreign_reasons[number]);
}

/* clang-format off */
static const struct option boottrace_rows[] = {
	{"trace", .type = VALUE_TEXT, AT(trace), .value = "SCENARIO",
	 .help = "the scenario: command, service:UNIT, or boot"},
	{"numRuns", .type = VALUE_NUMBER, AT(run_count), .value = "N", .least = 1, .most = RUNS_MAX,
	 .initial = 1,
	 .help = "how often; 3 at least, better 10, for statistics"},
	{"resultPath", .type = VALUE_TEXT, AT(result_path), .value = "DIR", .initial_help = "this directory",
	 .help = "where the traces are written"},
	{"runTag", .type = VALUE_TEXT, AT(tag), .value = "TEXT",
	 .help = "a part of the files' names, such as before or after"},
	{"preTraceCmd", .type = VALUE_TEXT, AT(before_command), .value = "CMD",
	 .help = "a shell's command before each run, which is not recorded"},
	{"postBootDelay", .type = VALUE_DURATION, AT(delay_ms), .value = "TIME", .most = DELAY_MS_MAX,
	 .initial_help = "120 s, of services 5 s",
	 .help = "record so long after the start of the machine or the service"},
	{"callBack", .type = VALUE_TEXT, AT(after_command), .value = "CMD",
	 .help = "a shell's command after all runs"},
	{"remove", .type = VALUE_ON, AT(wants_remove), .help = "abort all runs, and reset everything"},
	{"yes", .type = VALUE_ON, AT(is_sure), .help = "restart the machine without a question"},
	{.type = VALUE_END},
};

static const struct option foreign_rows[] = {
	{"traceFlags", .type = VALUE_TAKEN, .take = refuse, .number = FLAGS},
	{"noTraceFlagsInFileName", .type = VALUE_TAKEN, .take = refuse, .number = FLAGS},
	{"wakeupDelay", .type = VALUE_TAKEN, .take = refuse, .number = STANDBY},
	{"prepSystem", .type = VALUE_TAKEN, .take = refuse, .number = PREPARATION},
	{"noPrepReboot", .type = VALUE_TAKEN, .take = refuse, .number = PREPARATION},
	{"verboseReadyBoot", .type = VALUE_TAKEN, .take = refuse, .number = PREPARATION},
	{"noPopups", .type = VALUE_TAKEN, .take = refuse, .number = WINDOWS},
	{"leavePremerged", .type = VALUE_TAKEN, .take = refuse, .number = MERGE},
	{.type = VALUE_END},
};
/* clang-format on */

static const struct option_group groups[] = {
	{boottrace_rows, 0, false},
	{foreign_rows, 0, true},
	{session_option_rows, offsetof(struct boottrace, session), true},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "boottrace", .groups = groups, .dashes = "-"};

static bool is_plain(const char *text)
{
	for (const char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at))
			return false;
	return !text[strcspn(text, "/ \t\n_%")] && text[0] != '.' && strlen(text) <= 64;
}

static int take_scenario(struct boottrace *scenario)
{
	static const char service[] = "service:";
	const char *trace = scenario->trace;
	if (!strcmp(trace, "hibernate") || !strcmp(trace, "standby") || !strcmp(trace, "shutdown") ||
	    !strcmp(trace, "rebootCycle"))
		return cli_fail("boottrace: -trace %s: only command, service:UNIT and boot can be traced", trace);
	if (!strncmp(trace, service, sizeof(service) - 1) && trace[sizeof(service) - 1]) {
		scenario->kind = BOOTTRACE_SERVICE;
		const char *unit = trace + sizeof(service) - 1;
		if (strchr(unit, '/') || strlen(unit) >= BOOTTRACE_UNIT_BYTES)
			return cli_fail("boottrace: %s: not a unit", unit);
		boottrace_service_name(unit, scenario->unit, sizeof(scenario->unit));
		snprintf(scenario->scenario, sizeof(scenario->scenario), "service-%.200s", scenario->unit);
		return CLI_OK;
	}
	if (strcmp(trace, "command") && strcmp(trace, "boot"))
		return cli_fail("boottrace: -trace %s: command, service:UNIT or boot is expected", trace);
	scenario->kind = !strcmp(trace, "boot") ? BOOTTRACE_BOOT : BOOTTRACE_COMMAND;
	snprintf(scenario->scenario, sizeof(scenario->scenario), "%s", trace);
	return CLI_OK;
}

/* Return whether links of other users on the way to a directory lead into none of this user's. */
static bool is_own_way(const char *directory, struct diag *diag)
{
	char path[BOOTTRACE_PATH_BYTES];
	struct output_place place;
	/* Any name in it will do. */
	snprintf(path, sizeof(path), "%s/command.csv", directory);
	if (output_place_find_unlinked(&place, path, diag) != 0)
		return false;
	close(place.directory);
	return true;
}

static int take_directory(struct boottrace *scenario)
{
	struct stat status;
	struct diag diag = {""};
	const char *asked = scenario->result_path ? scenario->result_path : ".";
	char *full = realpath(asked, NULL);
	if (!full || stat(full, &status) != 0)
		return cli_fail("boottrace: -resultPath %s: %s", asked, strerror(errno));
	bool fits = snprintf(scenario->directory, sizeof(scenario->directory), "%s", full) <
		    (int)sizeof(scenario->directory);
	free(full);
	if (!S_ISDIR(status.st_mode))
		return cli_fail("boottrace: -resultPath %s: it is no directory", asked);
	if (access(scenario->directory, W_OK | X_OK) != 0)
		return cli_fail("boottrace: -resultPath: cannot write into %s: %s", scenario->directory,
				strerror(errno));
	if (!is_own_way(asked, &diag))
		return cli_fail("boottrace: -resultPath: %s", diag.text);
	return fits ? CLI_OK : cli_fail("boottrace: -resultPath: the path is too long");
}

static int settle(struct boottrace *scenario)
{
	if (!scenario->trace)
		return cli_fail("boottrace: -trace is missing: command -- CMD, service:UNIT or boot");
	int status = take_scenario(scenario);
	if (status != CLI_OK)
		return status;
	if (scenario->kind == BOOTTRACE_COMMAND && !scenario->command[0])
		return cli_fail("boottrace: the command is missing: -trace command -- CMD");
	if (scenario->kind != BOOTTRACE_COMMAND && scenario->command[0])
		return cli_fail("boottrace: %s: only -trace command has a command", scenario->command[0]);
	if (scenario->tag && (!is_plain(scenario->tag) || !scenario->tag[0]))
		return cli_fail("boottrace: -runTag %s: up to 64 characters without blanks, /, _, %% and controls",
				text_shown(scenario->tag));
	if (scenario->session.file_mode != SESSION_FILE_SEQUENTIAL || scenario->session.generations)
		return cli_fail("boottrace: each run has one trace; -file-mode and -generations are not for it");
	scenario->tag = scenario->tag ? scenario->tag : "";
	if (scenario->delay_ms == UINT32_MAX)
		scenario->delay_ms = scenario->kind == BOOTTRACE_BOOT ? BOOT_DELAY_MS : SERVICE_DELAY_MS;
	return take_directory(scenario);
}

static int boottrace_run(int count, char **arguments)
{
	static struct boottrace scenario;
	session_options_init(&scenario.session);
	scenario.session.index = SESSION_INDEX_NEVER;
	scenario.run_count = 1;
	scenario.delay_ms = UINT32_MAX;
	if (count == 2 && !strcmp(arguments[1], BOOTTRACE_CONTINUE_WORD))
		return boottrace_boot_continue();
	int status = options_parse(&grammar, count, arguments, &scenario, NULL, &scenario.command);
	if (status != CLI_OK)
		return status;
	if (scenario.wants_remove)
		return count > 2 ? cli_fail("boottrace: -remove stands alone") : boottrace_remove();
	status = settle(&scenario);
	if (status != CLI_OK)
		return status;
	return scenario.kind == BOOTTRACE_BOOT ? boottrace_boot_begin(&scenario) : run_all(&scenario);
}

const struct command command_boottrace = {
	.name = "boottrace",
	.usage = "-trace command|service:UNIT|boot [OPTIONS] [-- CMD [ARG...]], or -remove",
	.summary = "record a command, a service's start or the boot several times, and compare",
	.run = boottrace_run,
	.options = &grammar,
	.help = "Each run has a trace, SCENARIO_TAG_N.xht. At the end, statistics over the runs are printed, and what\n"
		"differs from the runs of other tags in the same directory. Options of xheap record are taken, too.\n\n"
		"Example:\n  xheap boottrace -trace command -numRuns 10 -runTag before -- ls /usr\n"};
