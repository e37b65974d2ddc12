/* SPDX-License-Identifier: MIT */
#include "cli/record/recording.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/record/record_files.h"
#include "os/monotonic.h"
#include "session/control/control_wait.h"
#include "session/logger/logger.h"

enum { INDEX_WAIT_MS = 100, SESSION_WAIT_MS = 1000, LOGGER_END_POLLS = 250, POLL_NS = 20000000 };

/* ---- its start ---- */

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
		cli_say(word == CONTROLLER_ATTACHED ? "attached to %s" : "%s", text);
	}
}

int record_attach_all(struct record *record)
{
	struct record_listener listener = {record, 0};
	const struct controller_listener callbacks = {record_on_message, &listener};
	struct diag diag = {""};
	int error = controller_attach(record->control, record->pids.items, record->pids.count, &callbacks, &diag);
	return listener.refusals ? CLI_FAILED : error ? cli_fail("%s", diag.text) : CLI_OK;
}

/* ---- its messages ---- */

void record_tell(const struct record *record, uint32_t kind, int64_t value)
{
	struct control_message message = {.kind = kind, .pid = record->command_pid, .value = value};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, record->program);
	control_send(record->control, &message);
}

void record_take(struct record *record, const struct control_message *message)
{
	if (message->kind == CONTROL_NOTE && message->text[0] &&
	    !(message->value ? record->is_silent : record->is_quiet))
		cli_say("%s", message->text);
	record->is_end_shown |= message->kind == CONTROL_NOTE && message->value == 2 && !record->is_silent;
	if (message->kind == CONTROL_REFUSED)
		snprintf(record->refusal, sizeof(record->refusal), "%s", message->text);
	if (message->kind == CONTROL_SUMMARY) {
		record->summary = message->summary;
		record->has_summary = true;
		if (message->summary.error && message->text[0] && !(message->summary.end && record->is_end_shown))
			cli_say("%s", message->text);
		/* A counter has its number now. */
		if (!message->summary.error && record_is_numbered(record) && message->text[0])
			snprintf(record->trace_path, sizeof(record->trace_path), "%s", message->text);
	}
}

static volatile sig_atomic_t is_index_unwanted;

static void on_index_unwanted(int signal)
{
	(void)signal;
	is_index_unwanted = 1;
}

/* The trace is complete, and the command waits for the index only. After a second a terminal shows the progress. */
static void index_wait_show(struct record *record, const struct control_message *message)
{
	const struct sigaction unwanted = {.sa_handler = on_index_unwanted};
	if (!record->index_wait_ns) {
		record->index_wait_ns = monotonic_now_ns();
		sigaction(SIGINT, &unwanted, NULL);
		sigaction(SIGTERM, &unwanted, NULL);
		sigaction(SIGHUP, &unwanted, NULL);
	}
	if (!record->is_quiet && isatty(STDERR_FILENO) == 1 && monotonic_now_ns() - record->index_wait_ns >= NS_PER_S)
		fprintf(stderr, "\r\033[Kmaking the index: %d %%; Ctrl-C ends without one", (int)message->value);
}

static void index_wait_over(const struct record *record)
{
	if (record->index_wait_ns && !record->is_quiet && isatty(STDERR_FILENO) == 1)
		fputs("\r\033[K", stderr);
}

/* Take a message of a logger that ends. */
static void take_last(struct record *record, const struct control_message *message)
{
	if (message->kind == CONTROL_INDEXING) {
		index_wait_show(record, message);
		return;
	}
	index_wait_over(record);
	record_take(record, message);
}

static void end_index_if_unwanted(struct record *record)
{
	if (is_index_unwanted)
		record_tell(record, CONTROL_STOP, 0);
	is_index_unwanted = 0;
}

void record_wait_for_summary(struct record *record)
{
	struct control_message message;
	while (!record->has_summary) {
		int got = control_receive(record->control, &message, record->index_wait_ns ? INDEX_WAIT_MS : -1);
		if (got < 0)
			break;
		end_index_if_unwanted(record);
		if (got > 0)
			take_last(record, &message);
	}
}

int record_wait_for_session(struct record *record, struct diag *diag)
{
	struct control_message message;
	struct control_wait wait;
	int got = 0;
	control_wait_begin(&wait, record->control, CONTROL_WAIT_STOP_MS);
	while (!record->has_summary && got >= 0) {
		got = control_wait_receive(&wait, &message, record->index_wait_ns ? INDEX_WAIT_MS : SESSION_WAIT_MS,
					   diag);
		end_index_if_unwanted(record);
		if (got > 0)
			take_last(record, &message);
	}
	return got == -EPIPE ? 0 : got < 0 ? got : 0;
}

/* ---- its end ---- */

/* The logger ends by itself and cleans up, since no process is left. A logger that hangs is killed. */
void record_end_logger(pid_t pid)
{
	for (int poll = 0; pid > 0 && poll < LOGGER_END_POLLS; poll++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		monotonic_pause(POLL_NS);
	}
	if (pid > 0)
		kill(pid, SIGKILL);
}
