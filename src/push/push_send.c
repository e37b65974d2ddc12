/* SPDX-License-Identifier: MIT */
#include "push/push_send.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/monotonic.h"
#include "os/proc.h"

/* The sender lies beside the command. */
static int sender_path(char path[PATH_MAX], struct diag *diag)
{
	int error = proc_beside(path, PATH_MAX, "xheap-send");
	if (error)
		return diag_fail(diag, -error, "cannot find xheap-send: %s", strerror(-error));
	if (access(path, X_OK))
		return diag_errno(diag, "cannot run %s, which was built with libcurl", path);
	return 0;
}

int push_send_begin(struct push_sending *sending, const struct push_request *request, struct diag *diag)
{
	char path[PATH_MAX], seconds[16];
	int output[2];
	int error = sender_path(path, diag);
	if (error)
		return error;
	if (pipe2(output, O_CLOEXEC))
		return diag_errno(diag, "cannot make a pipe");
	snprintf(seconds, sizeof(seconds), "%u", request->most_s);
	const char *const words[] = {"xheap-send",
				     request->answer < 0 ? "send" : "ask",
				     seconds,
				     request->url,
				     request->type,
				     request->is_basic ? "Basic" : "Bearer",
				     request->token_file,
				     NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, request->file, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
	if (request->answer >= 0)
		posix_spawn_file_actions_adddup2(&actions, request->answer, PUSH_ANSWER_FD);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	error = posix_spawn(&sending->pid, path, &actions, &attributes, (char *const *)words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(output[1]);
	sending->output = output[0];
	if (!error) {
		sending->until_ns = monotonic_now_ns() + (request->most_s + 5) * NS_PER_S;
		return 0;
	}
	sending->pid = 0;
	fd_close(&sending->output);
	return diag_fail(diag, error, "cannot run %s: %s", path, strerror(error));
}

/* Its line: "SECONDS TEXT". */
static void answer_read(const struct push_sending *sending, struct push_answer *answer)
{
	char line[sizeof(answer->text)];
	const ssize_t size = read(sending->output, line, sizeof(line) - 1);
	char *text = line;
	line[size > 0 ? size : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	answer->wait_s = (uint32_t)strtoul(line, &text, 10);
	snprintf(answer->text, sizeof(answer->text), "%s", text + (*text == ' '));
}

enum push_result push_send_poll(struct push_sending *sending, struct push_answer *answer)
{
	int status;
	*answer = (struct push_answer){.wait_s = 0};
	const pid_t got = waitpid(sending->pid, &status, WNOHANG);
	if (!got && monotonic_now_ns() < sending->until_ns)
		return PUSH_RUNNING;
	if (!got) {
		push_send_cancel(sending);
		snprintf(answer->text, sizeof(answer->text), "it does not end");
		return PUSH_LATER;
	}
	answer_read(sending, answer);
	sending->pid = 0;
	fd_close(&sending->output);
	if (got < 0 || !WIFEXITED(status)) {
		snprintf(answer->text, sizeof(answer->text), "xheap-send was ended by a signal");
		return PUSH_LATER;
	}
	return WEXITSTATUS(status) == PUSH_SENT      ? PUSH_SENT
	       : WEXITSTATUS(status) == PUSH_REFUSED ? PUSH_REFUSED
						     : PUSH_LATER;
}

void push_send_cancel(struct push_sending *sending)
{
	if (!sending->pid)
		return;
	kill(sending->pid, SIGKILL);
	while (waitpid(sending->pid, NULL, 0) < 0 && errno == EINTR)
		;
	sending->pid = 0;
	fd_close(&sending->output);
}
