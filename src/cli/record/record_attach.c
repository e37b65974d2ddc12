/* SPDX-License-Identifier: MIT */
#include "cli/record/record_attach.h"

#include <signal.h>
#include <sys/wait.h>

#include "cli/cli.h"
#include "cli/record/record.h"
#include "cli/record/record_answer.h"
#include "cli/record/record_files.h"
#include "cli/record/record_summary.h"
#include "cli/record/recording.h"
#include "inject/inject.h"
#include "os/monotonic.h"
#include "os/proc.h"

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

int record_attached(struct record *record)
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
