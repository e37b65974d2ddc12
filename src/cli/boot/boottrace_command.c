/* SPDX-License-Identifier: MIT */
#include "cli/boot/boottrace_command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/boot/boottrace.h"
#include "cli/boot/boottrace_runs.h"
#include "cli/own_command.h"
#include "os/monotonic.h"
#include "session/control/option_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { STATUS_SIGNALLED = 128 };

/* ---- signals ---- */

enum { ENDS_COUNT = 3 };
static const int end_signals[ENDS_COUNT] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction saved_ends[ENDS_COUNT];

/* Set by a signal that ends the run; and the process that records a command, 0: none. */
static volatile sig_atomic_t is_interrupted, recording_pid;

/* A terminal sends its signals to the recording and its command, too; one that only we have is passed on. The recording
   ignores SIGINT, and passes SIGTERM on. */
static void interrupt(int signal, siginfo_t *information, void *context)
{
	(void)context;
	is_interrupted = 1;
	if (recording_pid > 0 && (information->si_code == SI_USER || information->si_code == SI_QUEUE))
		kill((pid_t)recording_pid, signal == SIGINT ? SIGTERM : signal);
}

/* Nohup's SIGHUP stays ignored; the SIGINT that a shell ignores for its background does not. */
void boottrace_signals_take(void)
{
	const struct sigaction action = {.sa_sigaction = interrupt, .sa_flags = SA_SIGINFO | SA_RESTART};
	for (int i = 0; i < ENDS_COUNT; i++)
		if (sigaction(end_signals[i], NULL, &saved_ends[i]) == 0 &&
		    (end_signals[i] != SIGHUP || saved_ends[i].sa_handler != SIG_IGN))
			sigaction(end_signals[i], &action, NULL);
}

void boottrace_signals_give_back(void)
{
	for (int i = 0; i < ENDS_COUNT; i++)
		sigaction(end_signals[i], &saved_ends[i], NULL);
}

bool boottrace_is_interrupted(void)
{
	return is_interrupted;
}

/* ---- running ---- */

static int wait_for(pid_t pid)
{
	int status;
	if (pid < 0)
		return cli_fail("cannot start a process: %s", strerror(errno)), -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFSIGNALED(status) ? STATUS_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

int boottrace_shell(const char *command)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return wait_for(pid);
}

/* Return the last program that the first process of the trace executed; NULL if the trace has no process. */
static const struct trace_process *last_program(const struct trace_dictionary *dictionary)
{
	const struct trace_process *last = dictionary->process_count ? &dictionary->processes[0] : NULL;
	for (uint32_t i = 1; i < dictionary->process_count && last->end == TRACE_END_EXEC; i++)
		if (dictionary->processes[i].pid == last->pid)
			last = &dictionary->processes[i];
	return last;
}

/* Set the time that the first process of the trace ran. Leave the time of the whole run if the trace does not have the
   process's end. */
static int trace_time(const char *path, uint64_t *time_us)
{
	struct trace *trace;
	struct diag diag = {""};
	if (trace_open(&trace, path, &diag))
		return cli_fail("%s", diag.text);
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	const struct trace_process *last = last_program(dictionary);
	if (last && last->end != TRACE_END_EXEC && trace_process_end_is_known(last) &&
	    last->end_ns >= dictionary->processes[0].start_ns)
		*time_us = (uint64_t)(last->end_ns - dictionary->processes[0].start_ns) / 1000;
	trace_close(trace);
	return CLI_OK;
}

int boottrace_run_command(const struct boottrace *scenario, struct boottrace_run *run)
{
	struct own_words words = {.count = 0};
	char path[BOOTTRACE_PATH_BYTES];
	boottrace_trace_path(scenario, scenario->tag, run->number, path);
	own_words_add(&words, "xheap");
	own_words_add(&words, "record");
	own_words_add(&words, "--quiet");
	own_words_add(&words, "--output");
	own_words_add(&words, path);
	session_options_each_word(&scenario->session, own_words_add, &words);
	own_words_add(&words, "--");
	for (char **word = scenario->command; *word; word++)
		own_words_add(&words, *word);
	unlink(path);
	fflush(stdout);
	uint64_t before_ns = monotonic_now_ns();
	pid_t pid = fork();
	if (pid == 0) {
		execv("/proc/self/exe", words.items);
		_exit(127);
	}
	recording_pid = pid;
	/* The signal may have come before this process. */
	if (is_interrupted && pid > 0)
		kill(pid, SIGTERM);
	run->status = wait_for(pid);
	recording_pid = 0;
	run->time_us = (monotonic_now_ns() - before_ns) / 1000;
	own_words_fini(&words);
	if (is_interrupted)
		return CLI_FAILED;
	if (access(path, R_OK) != 0)
		return cli_fail("boottrace: run %llu has no trace", (unsigned long long)run->number);
	return run->status < 0 ? CLI_FAILED : trace_time(path, &run->time_us);
}
