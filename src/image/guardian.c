/* SPDX-License-Identifier: MIT */
#include "image/guardian.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/guardian_watchers.h"
#include "image/watch_message.h"
#include "image/watch_thread.h"
#include "os/monotonic.h"

/* A round without a beat counts only if this process had its rounds: on a machine that stood still nobody is stuck. */
enum { ROUND_MS = 25, ROUNDS_WITHOUT_BEAT = 10, RESTART_MS = 100 };

/* Before its first beat a watcher has no marks, and keeps no program from starting. One that a busy machine lets begin
   slowly must not be killed again and again. */
enum { ROUNDS_BEFORE_BEAT = 200 };

/* Watchers that cannot be ended, and the one that watches. */
enum { GUARDED_MAX = 8 };

struct guardian {
	int keeper;
	struct watch_life *life;
	uint32_t deadline_ms;
	enum watch_end end;   /* of the last watcher */
	uint64_t first_beats; /* of all watchers before this one */
	struct guardian_watcher watchers[GUARDED_MAX], *current;
	unsigned helpers;
};

static void isolate(int keeper)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGHUP,  SIGPIPE, SIGTERM,
				      SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
	prctl(PR_SET_NAME, "xheap-guardian");
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (keeper > 3)
		close_range(3, (unsigned)keeper - 1, 0);
	close_range((unsigned)keeper + 1, UINT_MAX, 0);
	/* Without the right to these it works, but may come late. */
	watch_memory_lock();
	/* Before the watcher, which may be stuck in a loop. */
	watch_priority_raise(WATCH_PRIORITY_GUARDIAN);
}

static struct guardian_watcher *free_row(struct guardian *guardian)
{
	for (int i = 0; i < GUARDED_MAX; i++)
		if (!guardian->watchers[i].pid)
			return &guardian->watchers[i];
	return NULL;
}

/* Start a watcher and send the keeper its socket. */
static bool watcher_start(struct guardian *guardian)
{
	/* The new watcher overwrites it. */
	int64_t beat_ns = __atomic_load_n(&guardian->life->beat_ns, __ATOMIC_RELAXED);
	guardian->first_beats = __atomic_load_n(&guardian->life->beats, __ATOMIC_RELAXED);
	guardian->current = free_row(guardian);
	int socket = guardian->current ? guarded_start(guardian->current, guardian->life, guardian->deadline_ms) : -1;
	if (socket < 0)
		return false;
	const struct watch_message message = {.kind = WATCH_WATCHER,
					      .pid = guardian->current->pid,
					      .value = (int32_t)guardian->end,
					      .beat_ns = beat_ns};
	watch_send(guardian->keeper, &message, socket, true);
	close(socket);
	return true;
}

/* Take note of children that have ended. */
static void reap(struct guardian *guardian)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		struct guardian_watcher *ended = NULL;
		for (int i = 0; i < GUARDED_MAX; i++)
			if (guardian->watchers[i].pid == pid)
				ended = &guardian->watchers[i];
		if (!ended) {
			guardian->helpers--;
			continue;
		}
		if (!ended->kill_ns)
			guardian->end = WIFSIGNALED(status) ? WATCH_END_KILLED : WATCH_END_EXITED;
		guarded_release(ended);
	}
}

/* Go on with watchers that watch no more. Return whether there are any. */
static bool check_ends(struct guardian *guardian)
{
	bool has_any = false;
	reap(guardian);
	for (int i = 0; i < GUARDED_MAX; i++) {
		struct guardian_watcher *guarded = &guardian->watchers[i];
		if (!guarded->pid || !guarded->kill_ns)
			continue;
		guarded_end(guarded, &guardian->helpers);
		has_any = true;
	}
	return has_any;
}

/* Return whether the keeper is still there, after a round's time or the watcher's end. */
static bool round_wait(const struct guardian *guardian, int milliseconds)
{
	const struct guardian_watcher *current = guardian->current && guardian->current->pid ? guardian->current : NULL;
	struct pollfd polled[] = {{guardian->keeper, POLLIN, 0},
				  {current ? current->pidfd : -1, POLLIN, 0},
				  {current ? current->socket : -1, POLLIN, 0}};
	poll(polled, 3, milliseconds);
	return !polled[0].revents;
}

/* Return true when the watcher watches no more, false when the keeper is gone. */
static bool watcher_guard(struct guardian *guardian)
{
	struct guardian_watcher *watcher = guardian->current;
	uint64_t beats = guardian->first_beats, round_ns = monotonic_now_ns();
	for (int silent = 0; round_wait(guardian, ROUND_MS);) {
		guarded_take_groups(watcher);
		check_ends(guardian);
		if (!watcher->pid)
			return true;
		uint64_t now = __atomic_load_n(&guardian->life->beats, __ATOMIC_RELAXED);
		/* A message of the watcher ends a wait early. */
		bool is_round = monotonic_now_ns() - round_ns >= ROUND_MS * NS_PER_MS;
		round_ns = is_round ? monotonic_now_ns() : round_ns;
		silent = now == beats ? silent + is_round : 0;
		beats = now;
		bool is_over = __atomic_load_n(&watcher->opens->is_over, __ATOMIC_ACQUIRE);
		if (is_over || silent >= (now == guardian->first_beats ? ROUNDS_BEFORE_BEAT : ROUNDS_WITHOUT_BEAT)) {
			guardian->end = is_over ? WATCH_END_EXITED : WATCH_END_STUCK;
			guarded_retire(watcher);
			check_ends(guardian);
			return true;
		}
	}
	return false;
}

/* End all watchers. No start waits for that; this process waits for the last open. */
static _Noreturn void guardian_end(struct guardian *guardian)
{
	if (guardian->current && guardian->current->pid)
		guarded_retire(guardian->current);
	guardian->current = NULL;
	while (check_ends(guardian))
		monotonic_pause(ROUND_MS * NS_PER_MS / ROUNDS_WITHOUT_BEAT);
	_exit(0);
}

_Noreturn void guardian_run(int keeper, struct watch_life *life, uint32_t deadline_ms)
{
	static struct guardian memory;
	struct guardian *guardian = &memory;
	*guardian = (struct guardian){.keeper = keeper, .life = life, .deadline_ms = deadline_ms};
	isolate(keeper);
	for (;;) {
		uint64_t began = monotonic_now_ns();
		bool has_begun = watcher_start(guardian);
		if (has_begun && !watcher_guard(guardian))
			guardian_end(guardian);
		/* A watcher that cannot work is not started again and again without a pause. */
		bool is_early =
			monotonic_now_ns() - began < RESTART_MS * NS_PER_MS && guardian->end == WATCH_END_EXITED;
		if ((is_early || !has_begun) && !round_wait(guardian, RESTART_MS))
			guardian_end(guardian);
		check_ends(guardian);
	}
}
