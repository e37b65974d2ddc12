/* SPDX-License-Identifier: MIT */
/* xheap record -p: processes that run already, until they end, the time is over, or somebody says so. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/record.h"
#include "inject/inject.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/logger.h"

enum { WAIT_MS = 100 };

static volatile sig_atomic_t is_asked_to_stop;

static void on_stop(int signal)
{
	(void)signal;
	is_asked_to_stop = 1;
}

static void tell(const struct record *record, uint32_t kind, pid_t pid)
{
	struct control_message message = {.kind = kind, .pid = pid};
	control_send(record->control, &message);
}

int record_start_logger(struct record *record)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
		return cli_fail("cannot make a socket: %s", strerror(errno));
	record->logger_pid = fork();
	if (record->logger_pid == 0)
		_exit(logger_run(&record->session, sockets[1]));
	close(sockets[1]);
	record->control = sockets[0];
	return record->logger_pid < 0 ? cli_fail("cannot start the logger: %s", strerror(errno)) : CLI_OK;
}

void record_on_message(void *cookie, enum controller_word word, const char *text)
{
	struct record_listener *listener = cookie;
	const struct record *record = listener->record;
	if (word == CONTROLLER_REFUSED) {
		cli_fail("%s", text);
		listener->refusals++;
	} else if (word == CONTROLLER_WARNING ? !record->is_silent : !record->is_quiet) {
		cli_say(word == CONTROLLER_ATTACHED ? "recording %s" : "%s", text);
	}
}

int record_attach_all(struct record *record)
{
	struct record_listener listener = {record, 0};
	const struct controller_listener callbacks = {record_on_message, &listener};
	struct diag diag = {""};
	int error = controller_attach(record->control, record->pids, record->pid_count, &callbacks, &diag);
	return listener.refusals ? CLI_FAILED : error ? cli_fail("%s", diag.text) : CLI_OK;
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
	/* Before anything is replaced by a trace. */
	for (unsigned i = 0; i < record->pid_count; i++) {
		struct diag diag = {""};
		if (inject_check(record->pids[i], &diag))
			return cli_fail("%s", diag.text);
	}
	proc_image(record->pids[0], image, sizeof(image));
	int status = record_set_path(record, image[0] ? image : "process", record->pids[0]);
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
		tell(record, CONTROL_READY, 0);
		if (!record->is_quiet)
			cli_say("%s",
				record->limit_ms ? "until the time is over; Ctrl-C ends it earlier" : "Ctrl-C ends it");
		wait_for_end(record);
	}
	tell(record, CONTROL_STOP, 0);
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
