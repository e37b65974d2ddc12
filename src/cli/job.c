/* SPDX-License-Identifier: MIT */
#include "cli/job.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include "os/monotonic.h"
#include "os/proc.h"

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

void job_take_signals(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN},
			 pass = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO | SA_RESTART};
	/* This one interrupts the wait. */
	struct sigaction note = {.sa_handler = note_stop};
	take(ignored_signals, IGNORED_COUNT, &ignore, saved_ignored);
	take(forwarded_signals, FORWARDED_COUNT, &pass, saved_forwarded);
	take(stop_signals, STOPS_COUNT, &note, saved_stops);
}

void job_give_signals_back(void)
{
	give_back(ignored_signals, IGNORED_COUNT, saved_ignored);
	give_back(forwarded_signals, FORWARDED_COUNT, saved_forwarded);
	give_back(stop_signals, STOPS_COUNT, saved_stops);
}

void job_forward_to(pid_t pid)
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
	char path[64];
	int child;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *file = depth < FAMILY_DEPTH ? fopen(path, "re") : NULL;
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

int job_wait(pid_t pid)
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
