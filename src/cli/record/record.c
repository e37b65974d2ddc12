/* SPDX-License-Identifier: MIT */
/* xheap record: a command that is started, or processes that run already. */
#include "cli/record/record.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/record/record_answer.h"
#include "cli/record/record_files.h"
#include "cli/record/record_launch.h"
#include "cli/record/record_options.h"
#include "cli/record/record_runtimes.h"
#include "cli/record/record_summary.h"
#include "cli/record/recording.h"
#include "inject/inject.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/control/option_rows.h"

/* ---- processes that run already ---- */

enum { WAIT_MS = 100 };

static volatile sig_atomic_t is_asked_to_stop;

static void on_stop(int signal)
{
	(void)signal;
	is_asked_to_stop = 1;
}

static uint64_t now_ms(void)
{
	return monotonic_now_ns() / NS_PER_MS;
}

static void wait_for_end(struct record *record)
{
	struct control_message message;
	uint64_t began_ms = now_ms();
	while (!record->has_summary && !is_asked_to_stop &&
	       (!record->limit_ms || now_ms() - began_ms < record->limit_ms)) {
		uint64_t left_ms = record->limit_ms ? record->limit_ms - (now_ms() - began_ms) : WAIT_MS;
		int got = control_receive(record->control, &message, left_ms < WAIT_MS ? (int)left_ms : WAIT_MS);
		if (got < 0)
			return;
		if (got > 0)
			record_take(record, &message);
	}
}

/* Record pids until they end, the time is over, or a signal asks for the end. The exit status. */
static int record_attached(struct record *record)
{
	char image[4096];
	const struct sigaction stop = {.sa_handler = on_stop};
	/* Refuse before the trace replaces a file. */
	for (unsigned i = 0; i < record->pids.count; i++) {
		struct diag diag = {""};
		if (inject_check(record->pids.items[i], &diag))
			return cli_fail("%s", diag.text);
	}
	proc_image(record->pids.items[0], image, sizeof(image));
	int status = record_set_path(record, image[0] ? image : "process", record->pids.items[0]);
	if (status)
		return status;
	record->session.command = image;
	record->session.is_attached = true;
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	status = record_start_logger(record);
	if (status == CLI_OK)
		status = record_attach_all(record);
	bool is_recording = status == CLI_OK;
	if (is_recording) {
		record_tell(record, CONTROL_READY, 0);
		record_note_processor_time(record);
		if (!record->is_quiet)
			cli_say("%s", record->limit_ms ? "the recording ends when the time is over, or with Ctrl-C"
						       : "the recording ends with Ctrl-C");
		uint64_t began_ns = monotonic_now_ns();
		wait_for_end(record);
		record->run_ns = monotonic_now_ns() - began_ns;
	}
	record_tell(record, CONTROL_STOP, 0);
	if (is_recording)
		record_wait_for_summary(record);
	int logger_status = 0;
	if (is_recording)
		waitpid(record->logger_pid, &logger_status, 0);
	else if (record->logger_pid > 0)
		record_end_logger(record->logger_pid);
	if (!is_recording) {
		record_remove_trace(record);
		return status;
	}
	record_print_summary(record, logger_status);
	return record->has_summary && !record->summary.error ? CLI_OK : CLI_FAILED;
}

static const struct option_grammar grammar = {
	.command = "record", .groups = record_option_groups, .dashes = "--", .takes_abbreviations = true};

/* Whether the options, and what follows them, are for this command. 0, or an exit status. */
static int check(const struct record *record)
{
	uint64_t number;
	if (record->pids.has_zero)
		return cli_fail("--pid 0: no process has this number");
	if (record->pids.count && record->command[0])
		return cli_fail("record: either --pid or a command, not both: %s%s", record->command[0],
				text_parse_count(record->command[0], &number)
					? "; several processes are --pid PID,PID (pgrep -d,)"
					: "");
	if (record->session.file_mode == SESSION_FILE_NONE)
		return cli_fail("record: --file-mode none is for sessions: xheap start NAME --file-mode none");
	if (record->limit_ms && !record->pids.count)
		return cli_fail("record: --duration goes with --pid; a command is recorded until it ends");
	if (!record->command[0] && !record->pids.count)
		return cli_fail("record: no command: xheap record [OPTIONS] COMMAND [ARG...]");
	return 0;
}

static int record_run(int count, char **arguments)
{
	static struct record memory;
	struct record *record = &memory;
	session_options_init(&record->session);
	int error = options_parse(&grammar, count, arguments, record, NULL, &record->command);
	error = error ? error : record_settle(record, "record");
	error = error ? error : check(record);
	error = error ? error : record_name_code(record);
	if (error)
		return error;
	if (record->pids.count)
		return (error = record_check_output(record)) ? error : record_attached(record);
	error = record_find_program(record);
	error = error ? error : record_check_output(record);
	error = error ? error : record_check_program(record);
	if (error)
		return error;
	record->session.command = record_join_command(record->command);
	return record_launch(record);
}

const struct command command_record = {
	.name = "record",
	.usage = "[-o FILE] [OPTIONS] [--] COMMAND [ARG...] | -p PID",
	.summary = "record every heap call of a program and of what it starts, or of processes that run",
	.run = record_run,
	.options = &grammar,
	.help = "SIZE and BYTES are numbers of bytes, also with K, M or G. The manual says more of each option.\n"
		"The exit status is that of COMMAND, or 128 and the number of the signal that killed it. It is 2, and\n"
		"COMMAND does not run, for wrong usage, when COMMAND cannot be found, executed or traced, and when "
		"the\n"
		"trace cannot be written.\n\n"
		"Examples:\n  xheap record -p $(pidof redis-server) --duration 10s\n  xheap record python3 -c "
		"'print(len([str(i) for i in range(100000)]))'\n  xheap heap\n",
};
