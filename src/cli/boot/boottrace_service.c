/* SPDX-License-Identifier: MIT */
#include "cli/boot/boottrace_service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/boot/autologger.h"
#include "cli/boot/autologger_start.h"
#include "cli/boot/boottrace.h"
#include "cli/boot/boottrace_command.h"
#include "cli/boot/boottrace_runs.h"
#include "cli/own_command.h"
#include "image/image_files.h"
#include "image/image_status.h"
#include "os/monotonic.h"
#include "session/control/option_rows.h"
#include "session/directory/directory.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { WORD_BYTES = 512 };

/* Sessions and image options of ours have names that begin like this; -remove finds them by it. */
static const char session_prefix[] = "boottrace.";
#define IN_FORCE_NS (30 * NS_PER_S)
#define INTERRUPT_NS (100 * NS_PER_MS)

/* ---- systemctl ---- */

/* Run systemctl with these words; take the first line of its output. Return its exit status, or -1. */
static int systemctl(char *const words[], char *line, size_t size)
{
	int pipes[2], status = -1;
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		execvp(words[0], words);
		_exit(127);
	}
	close(pipes[1]);
	FILE *output = fdopen(pipes[0], "re");
	char text[4096];
	line[0] = 0;
	while (output && fgets(text, sizeof(text), output))
		if (!line[0])
			snprintf(line, size, "%s", text);
	if (output)
		fclose(output);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int unit_do(const char *verb, const char *unit)
{
	char line[WORD_BYTES];
	char *const words[] = {"systemctl", (char *)verb, "--", (char *)unit, NULL};
	int status = systemctl(words, line, sizeof(line));
	/* Ctrl-C ends systemctl, too. */
	if (status && boottrace_is_interrupted())
		return CLI_FAILED;
	if (status == 127 || status < 0)
		return cli_fail("boottrace: systemctl cannot be run: services are started by systemd");
	return status ? cli_fail("boottrace: systemctl %s %s: status %d", verb, unit, status) : CLI_OK;
}

void boottrace_service_name(const char *unit, char *name, size_t size)
{
	char *const words[] = {"systemctl", "show", "--property=Id", "--value", "--", (char *)unit, NULL};
	if (systemctl(words, name, size) == 0)
		name[strcspn(name, "\n")] = 0;
	else
		name[0] = 0;
	if (!name[0])
		snprintf(name, size, "%s", unit);
}

/* Find the path of the unit's program in "{ path=/usr/sbin/nginx ; argv[]=... }". */
static int unit_program(const char *unit, char *path, size_t size)
{
	char line[4096];
	char *const words[] = {"systemctl", "show", "--property=ExecStart", "--value", "--", (char *)unit, NULL};
	int status = systemctl(words, line, sizeof(line));
	const char *begin = strstr(line, "path=");
	if (status == 127 || status < 0)
		return cli_fail("boottrace: systemctl cannot be run: services are started by systemd");
	if (status || !begin)
		return cli_fail("boottrace: %s: systemd knows no program of this unit", unit);
	begin += strlen("path=");
	snprintf(path, size, "%.*s", (int)strcspn(begin, " ;"), begin);
	return CLI_OK;
}

/* ---- the session ---- */

/* Each run has a name of its own, so that no start of it goes to the session of the run before. */
static void session_name(const struct boottrace *scenario, uint64_t number, char name[AUTOLOGGER_NAME_BYTES])
{
	snprintf(name, AUTOLOGGER_NAME_BYTES, "%s%.40s.%llu", session_prefix, scenario->unit,
		 (unsigned long long)number);
}

static int session_begin(const struct boottrace *scenario, uint64_t number, const char *path)
{
	struct own_words words = {.count = 0};
	struct diag why = {""};
	char name[AUTOLOGGER_NAME_BYTES];
	session_name(scenario, number, name);
	const char *const begin[] = {"start", name, "--quiet", "--pid", "0", "--output", path};
	for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		own_words_add(&words, begin[i]);
	session_options_each_word(&scenario->session, own_words_add, &words);
	int error = own_command_run(&words, false, &why);
	own_words_fini(&words);
	return error ? cli_fail("boottrace: %s", why.text) : CLI_OK;
}

static int session_end(const struct boottrace *scenario, uint64_t number)
{
	struct diag why = {""};
	char name[AUTOLOGGER_NAME_BYTES];
	session_name(scenario, number, name);
	int error = autologger_stop(name, &why);
	return error ? cli_fail("boottrace: the recording of %s has ended early: %s", scenario->unit,
				error == -ENOENT ? "its session is gone" : why.text)
		     : CLI_OK;
}

/* ---- the image option ---- */

/* Fail if the program is registered, as it is while another boottrace runs the service. */
static int check_free(const char *program)
{
	struct image_options options = {0};
	image_options_read(&options);
	bool is_taken = image_options_find(&options, program) != NULL;
	image_options_fini(&options);
	return is_taken ? cli_fail("boottrace: %s is registered already: xheap image remove %s", program, program)
			: CLI_OK;
}

static int image_add(const struct boottrace *scenario, uint64_t number, const char *program,
		     struct image_option *option)
{
	struct diag why = {""};
	char name[AUTOLOGGER_NAME_BYTES];
	session_name(scenario, number, name);
	image_option_init(option);
	int error = image_option_set(option, "Image", program, &why);
	error = error ? error : image_option_set(option, "Session", name, &why);
	error = error ? error : image_option_set(option, "Cgroup", scenario->unit, &why);
	error = error ? error : image_option_check(option, &why);
	error = error ? error : image_file_write(option, &why);
	return error ? cli_fail("boottrace: %s", why.text) : CLI_OK;
}

static int check_watcher(void)
{
	struct image_status status;
	image_status_read(&status);
	bool is_kept = image_status_is_kept(&status);
	image_status_fini(&status);
	return is_kept ? CLI_OK
		       : cli_fail("boottrace: the watcher of image options does not run: systemctl start xheap-images, "
				  "or xheap image watch");
}

/* ---- a run ---- */

/* The service starts, runs for its time, and stops; it is stopped before, too. */
static int service_cycle(const struct boottrace *scenario, struct boottrace_run *run)
{
	uint64_t before_ns = monotonic_now_ns();
	int status = unit_do("start", scenario->unit);
	run->time_us = (monotonic_now_ns() - before_ns) / 1000;
	if (status != CLI_OK) {
		unit_do("stop", scenario->unit);
		return status;
	}
	for (uint64_t until_ns = monotonic_now_ns() + scenario->delay_ms * NS_PER_MS, now_ns;
	     !boottrace_is_interrupted() && (now_ns = monotonic_now_ns()) < until_ns;)
		monotonic_pause(until_ns - now_ns < INTERRUPT_NS ? until_ns - now_ns : INTERRUPT_NS);
	return unit_do("stop", scenario->unit);
}

/* Fail if the run's trace has no process: its start was not seen, or could not be recorded. */
static int check_recorded(const struct boottrace *scenario, uint64_t number, const char *program, const char *path)
{
	struct trace *trace;
	struct image_status status;
	struct diag why = {""};
	if (trace_open(&trace, path, &why))
		return cli_fail("boottrace: %s", why.text);
	bool is_empty = !trace_dictionary(trace)->process_count;
	trace_close(trace);
	if (!is_empty)
		return CLI_OK;
	image_status_read(&status);
	snprintf(why.text, sizeof(why.text), "%s", image_status_row(&status, program)->last_why);
	image_status_fini(&status);
	return cli_fail("boottrace: run %llu of %s was not recorded: %s", (unsigned long long)number, scenario->unit,
			why.text[0] ? why.text : "its program did not start while it was watched");
}

/* Record a start while the program is registered. */
static int cycle_registered(const struct boottrace *scenario, const char *program, struct boottrace_run *run)
{
	struct image_option option;
	struct diag why = {""};
	int status = image_add(scenario, run->number, program, &option);
	if (status != CLI_OK)
		return status;
	if (image_status_await(IN_FORCE_NS, &why))
		status = cli_fail("boottrace: %s", why.text);
	if (status == CLI_OK && !boottrace_is_interrupted())
		status = service_cycle(scenario, run);
	if (image_file_remove(option.file, &why))
		status = cli_fail("boottrace: %s", why.text);
	return status;
}

int boottrace_run_service(const struct boottrace *scenario, struct boottrace_run *run)
{
	char program[IMAGE_PATH_BYTES], path[BOOTTRACE_PATH_BYTES];
	boottrace_trace_path(scenario, scenario->tag, run->number, path);
	int status = unit_program(scenario->unit, program, sizeof(program));
	if (status == CLI_OK)
		status = check_watcher();
	if (status == CLI_OK)
		status = check_free(program);
	if (status == CLI_OK)
		status = unit_do("stop", scenario->unit);
	if (status == CLI_OK)
		status = boottrace_is_interrupted() ? CLI_FAILED : session_begin(scenario, run->number, path);
	if (status != CLI_OK)
		return status;
	status = cycle_registered(scenario, program, run);
	int ended = session_end(scenario, run->number);
	if (boottrace_is_interrupted())
		return CLI_FAILED;
	if (status == CLI_OK)
		status = ended;
	return status == CLI_OK ? check_recorded(scenario, run->number, program, path) : status;
}

/* ---- -remove ---- */

static void stop_session(void *cookie, const char *name)
{
	struct diag why = {""};
	int *status = cookie;
	if (strncmp(name, session_prefix, sizeof(session_prefix) - 1))
		return;
	int error = autologger_stop(name, &why);
	if (error && error != -ENOENT)
		*status = cli_fail("boottrace: %s", why.text);
}

int boottrace_service_remove(void)
{
	struct image_options options = {0};
	struct diag why = {""};
	int status = CLI_OK;
	image_options_read(&options);
	for (size_t i = 0; i < options.count; i++) {
		const struct image_option *option = &options.items[i];
		if (!strncmp(option->session, session_prefix, sizeof(session_prefix) - 1) &&
		    image_file_remove(option->file, &why))
			status = cli_fail("boottrace: %s", why.text);
	}
	image_options_fini(&options);
	session_each(stop_session, &status);
	return status;
}
