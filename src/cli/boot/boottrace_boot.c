/* SPDX-License-Identifier: MIT */
/*
 * xheap boottrace -trace boot: the machine is started again and again. Between the starts everything that is known is
 * in two files: the state, and an autologger, whose session records the boot. The service xheap-boottrace goes on after
 * each start; -remove removes both files at any time.
 */
#include "cli/boot/boottrace_boot.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/boot/autologger.h"
#include "cli/boot/autologger_start.h"
#include "cli/boot/boottrace.h"
#include "cli/boot/boottrace_command.h"
#include "cli/boot/boottrace_report.h"
#include "cli/boot/boottrace_runs.h"
#include "cli/boot/boottrace_service.h"
#include "os/monotonic.h"
#include "session/control/option_rows.h"

#define STATE_FILE "boottrace.state"
#define LOGGER_NAME "xheap-boottrace"

/* ---- the state ---- */

static int state_write(const struct boottrace *scenario, uint64_t number, struct diag *why)
{
	struct fields fields = {.text = NULL};
	fields_add_number(&fields, "next_run", number);
	fields_add_number(&fields, "runs", scenario->run_count);
	fields_add_number(&fields, "delay_ms", scenario->delay_ms);
	fields_add_number(&fields, "was_enabled", scenario->was_enabled);
	fields_add(&fields, "directory", scenario->directory);
	fields_add(&fields, "tag", scenario->tag);
	fields_add(&fields, "before_command", scenario->before_command ? scenario->before_command : "");
	fields_add(&fields, "after_command", scenario->after_command ? scenario->after_command : "");
	int error = autologger_state_write(STATE_FILE, &fields, why);
	fields_fini(&fields);
	return error;
}

/* The texts of a state that was read. */
struct state_texts {
	char tag[100], before_command[4096], after_command[4096];
};

/* Return false if there is no state. */
static bool state_read(struct boottrace *scenario, struct state_texts *texts, uint64_t *number)
{
	char *text = autologger_state_read(STATE_FILE);
	if (!text)
		return false;
	*number = fields_number(text, "next_run", 0);
	scenario->run_count = fields_number(text, "runs", 0);
	scenario->delay_ms = (uint32_t)fields_number(text, "delay_ms", 0);
	scenario->was_enabled = fields_number(text, "was_enabled", 1);
	fields_value(text, "directory", scenario->directory, sizeof(scenario->directory));
	fields_value(text, "tag", texts->tag, sizeof(texts->tag));
	fields_value(text, "before_command", texts->before_command, sizeof(texts->before_command));
	fields_value(text, "after_command", texts->after_command, sizeof(texts->after_command));
	free(text);
	scenario->kind = BOOTTRACE_BOOT;
	scenario->tag = texts->tag;
	scenario->before_command = texts->before_command[0] ? texts->before_command : NULL;
	scenario->after_command = texts->after_command[0] ? texts->after_command : NULL;
	snprintf(scenario->scenario, sizeof(scenario->scenario), "boot");
	return *number > 0 && scenario->directory[0] == '/';
}

/* The autologger of the next run. */
static int logger_write(const struct boottrace *scenario, uint64_t number, struct diag *why)
{
	static struct autologger logger;
	char path[BOOTTRACE_PATH_BYTES];
	boottrace_trace_path(scenario, scenario->tag, number, path);
	autologger_init(&logger, LOGGER_NAME);
	int error = autologger_set(&logger, "Guid", AUTOLOGGER_HEAP_GUID, why);
	error = error ? error : autologger_set(&logger, "Start", "1", why);
	error = error ? error : autologger_set(&logger, "AllProcesses", "1", why);
	error = error ? error : autologger_set(&logger, "MaxFileSize", "0", why);
	error = error ? error : autologger_set(&logger, "FileName", path, why);
	return error ? error : autologger_file_write(&logger, why);
}

/* ---- restarts ---- */

static int restart(const struct boottrace *scenario, uint64_t number)
{
	struct diag why = {""};
	int status = scenario->before_command ? boottrace_shell(scenario->before_command) : 0;
	if (status) {
		boottrace_remove();
		return cli_fail("boottrace: -preTraceCmd ended with status %d before run %llu", status,
				(unsigned long long)number);
	}
	if (logger_write(scenario, number, &why) || state_write(scenario, number, &why)) {
		boottrace_remove();
		return cli_fail("boottrace: %s", why.text);
	}
	if (boottrace_shell("systemctl reboot") == 0)
		return CLI_OK;
	boottrace_remove();
	return cli_fail("boottrace: the machine cannot be restarted by systemctl reboot");
}

static int ask(const struct boottrace *scenario)
{
	char answer[16];
	if (scenario->is_sure)
		return CLI_OK;
	if (!isatty(STDIN_FILENO))
		return cli_fail("boottrace: -trace boot restarts this machine; -yes allows it");
	fprintf(stderr, "Restart this machine %llu times? [y/N] ", (unsigned long long)scenario->run_count);
	bool is_agreed = fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
	return is_agreed ? CLI_OK : cli_fail("boottrace: nothing was done");
}

static void refuse_word(void *cookie, const char *word)
{
	const char **first = cookie;
	if (!*first)
		*first = !strncmp(word, "--", 2) ? "an option of a recording" : "";
}

/* Warn of a directory that is empty after a restart, unless something saves it. */
static void warn_of_memory(const char *directory)
{
	struct statfs system;
	if (statfs(directory, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC))
		cli_say("boottrace: -resultPath %s is in memory: a restart empties it", directory);
}

/* Refuse a command that the state does not keep whole. */
static int check_length(const char *option, const char *command)
{
	const size_t most = sizeof(((struct state_texts *)NULL)->before_command) - 1;
	return command && strlen(command) > most
		       ? cli_fail("boottrace: -trace boot: -%s is longer than %zu bytes", option, most)
		       : CLI_OK;
}

int boottrace_boot_begin(struct boottrace *scenario)
{
	struct boottrace other = {.run_count = 0};
	static struct state_texts texts;
	uint64_t number;
	const char *word = NULL;
	struct session_options given = scenario->session;
	/* Without the option, boottrace makes no index. */
	if (given.index == SESSION_INDEX_NEVER)
		given.index = SESSION_INDEX_IDLE;
	session_options_each_word(&given, refuse_word, &word);
	if (word)
		return cli_fail("boottrace: -trace boot takes no options of a recording");
	if (check_length("preTraceCmd", scenario->before_command) != CLI_OK ||
	    check_length("callBack", scenario->after_command) != CLI_OK)
		return CLI_FAILED;
	if (state_read(&other, &texts, &number))
		return cli_fail("boottrace: a boot trace is under way, run %llu of %llu; xheap boottrace -remove "
				"aborts it",
				(unsigned long long)number, (unsigned long long)other.run_count);
	if (geteuid() != 0)
		return cli_fail("boottrace: -trace boot is for root");
	warn_of_memory(scenario->directory);
	int status = ask(scenario);
	if (status != CLI_OK)
		return status;
	scenario->was_enabled = boottrace_shell("systemctl -q is-enabled xheap-autologger.service") == 0;
	if (boottrace_shell("systemctl enable -q xheap-autologger.service xheap-boottrace.service"))
		return cli_fail("boottrace: xheap's services cannot be enabled by systemctl");
	return restart(scenario, 1);
}

int boottrace_remove(void)
{
	struct diag why = {""};
	struct boottrace scenario = {.run_count = 0};
	static struct state_texts texts;
	uint64_t number;
	bool was_there = state_read(&scenario, &texts, &number);
	int error = autologger_stop(LOGGER_NAME, &why);
	if (error && error != -ENOENT)
		cli_say("boottrace: %s", why.text);
	error = autologger_file_remove(LOGGER_NAME, &why);
	autologger_state_remove(STATE_FILE);
	autologger_state_remove(LOGGER_NAME ".status");
	if (error && error != -ENOENT)
		return cli_fail("boottrace: %s", why.text);
	if (was_there && boottrace_shell(scenario.was_enabled ? "systemctl disable -q xheap-boottrace.service"
							      : "systemctl disable -q xheap-boottrace.service "
								"xheap-autologger.service"))
		return cli_fail("boottrace: systemctl cannot disable xheap's services");
	return boottrace_service_remove();
}

/* ---- after a start ---- */

/* The runs are done: the report goes beside the traces, as nobody sees the output of a service. */
static int finish(const struct boottrace *scenario)
{
	char path[BOOTTRACE_PATH_BYTES];
	boottrace_remove();
	boottrace_remove_rest(scenario);
	boottrace_runs_path(scenario, scenario->tag, path);
	snprintf(path + strlen(path) - strlen("csv"), sizeof("txt"), "txt");
	/* The commands that compare the runs inherit it. */
	if (!freopen(path, "w", stdout))
		return cli_fail("cannot write %s: %s", path, strerror(errno));
	return boottrace_end(scenario);
}

int boottrace_boot_continue(void)
{
	static struct boottrace scenario;
	static struct state_texts texts;
	struct diag why = {""};
	struct timespec boot;
	struct boottrace_run run = {.number = 0};
	if (!state_read(&scenario, &texts, &run.number))
		return CLI_OK;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	run.time_us = (uint64_t)boot.tv_sec * 1000000 + (uint64_t)boot.tv_nsec / 1000;
	uint64_t until_ns = monotonic_now_ns() + scenario.delay_ms * NS_PER_MS, now_ns;
	while ((now_ns = monotonic_now_ns()) < until_ns)
		monotonic_pause(until_ns - now_ns);
	/* -remove may have come while this waited. */
	if (!state_read(&scenario, &texts, &run.number))
		return CLI_OK;
	int error = autologger_stop(LOGGER_NAME, &why);
	if (error) {
		boottrace_remove();
		return cli_fail("boottrace: run %llu was not recorded: %s", (unsigned long long)run.number,
				error == -ENOENT ? "its session does not run" : why.text);
	}
	/* Else the next start of the machine would go on with the runs. */
	if (boottrace_add_run(&scenario, &run) != CLI_OK) {
		boottrace_remove();
		return CLI_FAILED;
	}
	return run.number < scenario.run_count ? restart(&scenario, run.number + 1) : finish(&scenario);
}
