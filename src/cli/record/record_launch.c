/* SPDX-License-Identifier: MIT */
/*
 * A command that is recorded from its first instruction. It stays a child of this process, in its process group, as it
 * would be the shell's; the logger is another child, which the terminal does not reach. This process waits, and passes
 * signals on.
 */
#include "cli/record/record_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "action/explain/explanation_end.h"
#include "cli/cli.h"
#include "cli/record/record.h"
#include "cli/record/record_files.h"
#include "cli/record/record_summary.h"
#include "cli/record/recording.h"
#include "os/fd.h"
#include "os/limits.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/logger/logger.h"

/* ---- job control ---- */

enum {
	IGNORED_COUNT = 2,
	FORWARDED_COUNT = 5,
	STOPS_COUNT = 3,
	POLL_NS = 20000000,
	POLLS_FIRST = 3,
	POLLS_LAST = 100,
	FREED_MAX = 64,
	FAMILY_DEPTH = 32
};

static const int ignored_signals[IGNORED_COUNT] = {SIGINT, SIGQUIT};
static const int forwarded_signals[FORWARDED_COUNT] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
static const int stop_signals[STOPS_COUNT] = {SIGTSTP, SIGTTIN, SIGTTOU};
static struct sigaction saved_ignored[IGNORED_COUNT], saved_forwarded[FORWARDED_COUNT], saved_stops[STOPS_COUNT];
static volatile sig_atomic_t forward_to, stop_asked;

/* Sent to us by name, not by the terminal to everybody: it is meant for the command. */
static void forward(int signal, siginfo_t *information, void *context)
{
	(void)context;
	if (forward_to > 0 && (information->si_code == SI_USER || information->si_code == SI_QUEUE) &&
	    information->si_pid != forward_to)
		kill((pid_t)forward_to, signal);
}

static void note_stop(int signal)
{
	stop_asked = signal;
}

static void take(const int *signals, int count, const struct sigaction *action, struct sigaction *saved)
{
	for (int i = 0; i < count; i++)
		sigaction(signals[i], action, &saved[i]);
}

static void give_back(const int *signals, int count, const struct sigaction *saved)
{
	for (int i = 0; i < count; i++)
		sigaction(signals[i], &saved[i], NULL);
}

/* The terminal's signals are the command's affair from here on; others sent to us are passed on to it. */
static void job_take_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN},
			 pass = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART};
	/* This one interrupts the wait. */
	struct sigaction note = {.sa_handler = note_stop};
	take(ignored_signals, IGNORED_COUNT, &ignore, saved_ignored);
	take(forwarded_signals, FORWARDED_COUNT, &pass, saved_forwarded);
	take(stop_signals, STOPS_COUNT, &note, saved_stops);
}

/* In the forked command: as it was before. */
static void job_give_signals_back(void)
{
	give_back(ignored_signals, IGNORED_COUNT, saved_ignored);
	give_back(forwarded_signals, FORWARDED_COUNT, saved_forwarded);
	give_back(stop_signals, STOPS_COUNT, saved_stops);
}

/* Signals that are sent to us by name go to pid from now on. */
static void job_forward_to(pid_t pid)
{
	forward_to = pid;
}

/*
 * A process that has called vfork cannot stop before its child has executed another program. If the stop hits the child
 * first, the parent never stops and the shell waits forever. That can happen without us, but with us the child takes
 * longer: such children are let go, and stopped again when their parents have.
 */
struct freed {
	pid_t pids[FREED_MAX];
	int count;
};

static void free_children(pid_t pid, int depth, struct freed *freed)
{
	int child;
	FILE *file = depth < FAMILY_DEPTH ? fopen(proc_path(pid, "task/%d/children", (int)pid).text, "re") : NULL;
	if (!file)
		return;
	bool is_waiting = proc_state(pid) == 'D';
	while (fscanf(file, "%d", &child) == 1) {
		if (is_waiting && proc_state(child) == 'T' && freed->count < FREED_MAX) {
			freed->pids[freed->count++] = child;
			kill(child, SIGCONT);
		}
		free_children(child, depth + 1, freed);
	}
	fclose(file);
}

/* A stop was asked for; the status of the command once it has followed, or 0 when it goes its own way. */
static pid_t wait_for_stop(pid_t pid, int *status)
{
	struct freed freed = {.count = 0};
	int signal = stop_asked;
	pid_t got = 0;
	stop_asked = 0;
	for (int poll = 0; poll < POLLS_LAST && got == 0; poll++) {
		monotonic_pause(POLL_NS);
		got = waitpid(pid, status, WUNTRACED | WNOHANG);
		if (got == 0 && poll >= POLLS_FIRST)
			free_children(pid, 0, &freed);
	}
	for (int i = 0; i < freed.count; i++)
		kill(freed.pids[i], signal);
	return got;
}

/* Wait for the command to end; stop when it stops, go on when it does. Its wait status. */
static int job_wait(pid_t pid)
{
	for (;;) {
		int status;
		pid_t got = stop_asked ? wait_for_stop(pid, &status) : waitpid(pid, &status, WUNTRACED);
		if (got == 0 || (got < 0 && errno == EINTR))
			continue;
		if (got < 0)
			return 0;
		if (!WIFSTOPPED(status))
			return status;
		/* The shell must see us stopped, to give its user the prompt; its fg wakes the whole group. */
		raise(SIGSTOP);
		kill(pid, SIGCONT);
	}
}

enum { STATUS_SIGNALLED = 128 };

/* In the child: wait for `go`, then execute the command. Write the error number of a failed exec to `failure`. */
__attribute__((noreturn)) static void become_command(struct record *record, int go, int failure)
{
	char byte;
	ssize_t got;
	do
		got = read(go, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(CLI_FAILED);
	job_give_signals_back();
	execv(record->program, record->command);
	int error = errno;
	if (write(failure, &error, sizeof(error)) != (ssize_t)sizeof(error))
		_exit(CLI_FAILED);
	/* Stay until the logger has detached. */
	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(CLI_FAILED);
}

/* Wait for the logger's answer to CONTROL_LAUNCH. 0, or an exit status after a message. */
static int wait_until_held(struct record *record)
{
	struct control_message message;
	for (;;) {
		int got = control_receive(record->control, &message, -1);
		if (got < 0)
			return cli_fail("cannot record: the logger has died");
		if (got == 0)
			continue;
		if (message.kind != CONTROL_LAUNCHED) {
			record_take(record, &message);
			continue;
		}
		if (message.value == 0)
			return 0;
		return cli_fail("%s", message.text);
	}
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? STATUS_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* End the logger and remove its trace; a session that ran before keeps both. */
static void give_up(struct record *record)
{
	if (record->is_in_session)
		return;
	record_end_logger(record->logger_pid);
	record_remove_trace(record);
}

/* The pipes between the command, its logger and this process while the command is started; -1: closed. */
struct launch {
	struct limits limits; /* of the command */
	int sockets[2];       /* this process's and the logger's; of a session that runs: none */
	int ids[2];           /* to the command: the pid of its logger */
	int failure[2];       /* from the command: that it is ready, then why its exec failed */
	int go[2];            /* to the command: execute */
};

static int launch_open(struct launch *launch, const struct record *record)
{
	*launch = (struct launch){.sockets = {-1, -1}, .ids = {-1, -1}, .failure = {-1, -1}, .go = {-1, -1}};
	limits_raise(&launch->limits);
	if (pipe2(launch->ids, O_CLOEXEC) == 0 && pipe2(launch->failure, O_CLOEXEC) == 0 &&
	    pipe2(launch->go, O_CLOEXEC) == 0 &&
	    (record->is_in_session || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, launch->sockets) == 0))
		return 0;
	char why[256];
	int error = errno;
	snprintf(why, sizeof(why), "%s", strerror(error));
	limits_explain(0, error, why, sizeof(why));
	return cli_fail("cannot make a pipe: %s", why);
}

/* In the child that becomes the command. */
static _Noreturn void command_run(struct record *record, struct launch *launch)
{
	int ready = 0;
	/* Without this the read would wait for this process itself. */
	fd_close(&launch->ids[1]);
	if (read(launch->ids[0], &record->logger_pid, sizeof(record->logger_pid)) !=
	    (ssize_t)sizeof(record->logger_pid))
		_exit(CLI_FAILED);
	fd_close(&launch->go[1]);
	limits_restore(&launch->limits);
	/* With Yama the logger, which is no ancestor, may trace this process only with its consent. */
	prctl(PR_SET_PTRACER, record->logger_pid, 0, 0, 0);
	if (write(launch->failure[1], &ready, sizeof(ready)) != (ssize_t)sizeof(ready))
		_exit(CLI_FAILED);
	become_command(record, launch->go[0], launch->failure[1]);
}

static int logger_fork(struct record *record, struct launch *launch)
{
	int error = record_set_path(record, record->command[0], record->command_pid);
	if (error)
		return error;
	record->logger_pid = fork();
	if (record->logger_pid == 0) {
		fd_close(&launch->go[1]);
		_exit(logger_run(&record->session, launch->sockets[1]));
	}
	return record->logger_pid < 0 ? CLI_FAILED : 0;
}

/* Fork the command, then the logger: the name of the trace has the pid of the command. */
static int launch_fork(struct launch *launch, struct record *record)
{
	record->command_pid = fork();
	if (record->command_pid == 0)
		command_run(record, launch);
	int error = record->command_pid < 0 ? CLI_FAILED : 0;
	if (!error && !record->is_in_session)
		error = logger_fork(record, launch);
	fd_close(&launch->failure[1]);
	fd_close(&launch->go[0]);
	if (!record->is_in_session) {
		fd_close(&launch->sockets[1]);
		record->control = launch->sockets[0];
	}
	return error;
}

/* Let the logger take the command, which waits, into its session. */
static int launch_hold(struct launch *launch, struct record *record)
{
	int ready;
	if (write(launch->ids[1], &record->logger_pid, sizeof(record->logger_pid)) <= 0 ||
	    read(launch->failure[0], &ready, sizeof(ready)) != (ssize_t)sizeof(ready))
		return 0;
	record_tell(record, CONTROL_LAUNCH, 0);
	return wait_until_held(record);
}

static int launch_give_up(struct launch *launch, struct record *record, int error)
{
	fd_close(&launch->ids[1]);
	fd_close(&launch->go[1]);
	if (record->command_pid > 0)
		waitpid(record->command_pid, NULL, 0);
	record_tell(record, CONTROL_EXEC_FAILED, 0);
	close(record->control);
	give_up(record);
	return error;
}

/* Let the command execute. 0, or the error number of its exec. */
static int launch_go(struct launch *launch)
{
	int reason = 0;
	ssize_t got;
	if (write(launch->go[1], "g", 1) != 1)
		return errno;
	do
		got = read(launch->failure[0], &reason, sizeof(reason));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(reason) ? reason : 0;
}

static int not_executed(struct launch *launch, struct record *record, int reason)
{
	record_tell(record, CONTROL_EXEC_FAILED, 0);
	if (!record->is_in_session)
		record_wait_for_summary(record);
	/* The child has waited until the logger detached from it. */
	fd_close(&launch->go[1]);
	waitpid(record->command_pid, NULL, 0);
	give_up(record);
	return cli_fail("cannot run %s: %s", record->command[0], strerror(reason));
}

/* Whether the logger killed the command at its exec: its reason arrived before. */
static bool is_refused(struct record *record, int status)
{
	struct control_message message;
	while (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !record->refusal[0] &&
	       control_receive(record->control, &message, 0) > 0)
		record_take(record, &message);
	return record->refusal[0] != 0;
}

static int command_refused(struct record *record)
{
	if (!record->is_in_session)
		record_wait_for_summary(record);
	give_up(record);
	return cli_fail("%s", record->refusal);
}

int record_launch(struct record *record)
{
	struct launch launch;
	int error = launch_open(&launch, record);
	if (error)
		return error;
	job_take_signals();
	error = launch_fork(&launch, record);
	if (!error)
		error = launch_hold(&launch, record);
	if (error)
		return launch_give_up(&launch, record, error);
	job_forward_to(record->command_pid);
	uint64_t began_ns = monotonic_now_ns();
	int reason = launch_go(&launch);
	if (reason)
		return not_executed(&launch, record, reason);
	fd_close(&launch.go[1]);
	int status = job_wait(record->command_pid), logger_status = 0;
	record->run_ns = monotonic_now_ns() - began_ns;
	record->has_crashed = WIFSIGNALED(status) && explain_is_crash(WTERMSIG(status));
	record->has_failed = WIFEXITED(status) && WEXITSTATUS(status);
	job_forward_to(0); /* somebody else may get its number */
	record_tell(record, CONTROL_STATUS, status);
	if (is_refused(record, status))
		return command_refused(record);
	if (record->is_in_session)
		return exit_status(status);
	record_wait_for_summary(record);
	waitpid(record->logger_pid, &logger_status, 0);
	job_give_signals_back();
	record_print_summary(record, logger_status);
	return exit_status(status);
}

int record_launch_in_session(struct record *record)
{
	int error = record_find_program(record);
	if (!error)
		error = record_check_program(record);
	record->is_in_session = true;
	return error ? error : record_launch(record);
}
