/* SPDX-License-Identifier: MIT */
#include "image/guardian.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/watch_message.h"
#include "image/watcher.h"
#include "os/fd.h"
#include "os/monotonic.h"

/* A round without a beat counts only if this process had its rounds: on a machine that stood still nobody is stuck. */
enum { ROUND_MS = 25, ROUNDS_WITHOUT_BEAT = 10, RESTART_MS = 100 };

/* Before its first beat a watcher has no marks, and keeps no program from starting. One that a busy machine lets begin
   slowly must not be killed again and again. */
enum { ROUNDS_BEFORE_BEAT = 200 };

struct guardian {
	int keeper;
	pid_t watcher;
	int watcher_fd; /* pidfd; -1: the kernel has none, and an end is noticed a round later */
	struct watch_life *life;
	uint32_t deadline_ms;
	enum watch_end end;   /* of the last watcher */
	uint64_t first_beats; /* of all watchers before this one */
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
	mlockall(MCL_CURRENT | MCL_FUTURE);
	setpriority(PRIO_PROCESS, 0, -20);
	/* Before the watcher, which may be stuck in a loop. */
	sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){.sched_priority = 2});
}

/* Start a watcher and send the keeper its socket. */
static bool watcher_start(struct guardian *guardian)
{
	int sockets[2];
	pid_t self = getpid();
	/* The new watcher overwrites it. */
	int64_t beat_ns = __atomic_load_n(&guardian->life->beat_ns, __ATOMIC_RELAXED);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
		return false;
	guardian->first_beats = __atomic_load_n(&guardian->life->beats, __ATOMIC_RELAXED);
	guardian->watcher = fork();
	if (guardian->watcher == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		_exit(watcher_run(sockets[1], guardian->life, guardian->deadline_ms));
	}
	close(sockets[1]);
	const struct watch_message message = {
		.kind = WATCH_WATCHER, .pid = guardian->watcher, .value = (int32_t)guardian->end, .beat_ns = beat_ns};
	if (guardian->watcher > 0)
		watch_send(guardian->keeper, &message, sockets[0], true);
	close(sockets[0]);
	guardian->watcher_fd = guardian->watcher > 0 ? (int)syscall(SYS_pidfd_open, guardian->watcher, 0) : -1;
	return guardian->watcher > 0;
}

/* Return whether the watcher has ended, and note why. */
static bool watcher_has_ended(struct guardian *guardian)
{
	int status;
	if (waitpid(guardian->watcher, &status, WNOHANG) != guardian->watcher)
		return false;
	guardian->end = WIFSIGNALED(status) ? WATCH_END_KILLED : WATCH_END_EXITED;
	return true;
}

static void watcher_kill(struct guardian *guardian)
{
	kill(guardian->watcher, SIGKILL);
	waitpid(guardian->watcher, NULL, 0);
	guardian->end = WATCH_END_STUCK;
}

/* Return whether the keeper is still there, after a round's time or the watcher's end. */
static bool round_wait(const struct guardian *guardian, int milliseconds)
{
	struct pollfd polled[] = {{guardian->keeper, POLLIN, 0}, {guardian->watcher_fd, POLLIN, 0}};
	poll(polled, 2, milliseconds);
	return !polled[0].revents;
}

/* Return true when the watcher has ended, false when the keeper is gone. */
static bool watcher_guard(struct guardian *guardian)
{
	uint64_t beats = guardian->first_beats;
	for (int silent = 0; round_wait(guardian, ROUND_MS);) {
		if (watcher_has_ended(guardian))
			return true;
		uint64_t now = __atomic_load_n(&guardian->life->beats, __ATOMIC_RELAXED);
		silent = now == beats ? silent + 1 : 0;
		beats = now;
		if (silent >= (now == guardian->first_beats ? ROUNDS_BEFORE_BEAT : ROUNDS_WITHOUT_BEAT)) {
			watcher_kill(guardian);
			return true;
		}
	}
	return false;
}

_Noreturn void guardian_run(int keeper, struct watch_life *life, uint32_t deadline_ms)
{
	struct guardian guardian = {.keeper = keeper, .life = life, .deadline_ms = deadline_ms, .watcher_fd = -1};
	isolate(keeper);
	for (;;) {
		uint64_t began = monotonic_now_ns();
		bool has_begun = watcher_start(&guardian);
		if (has_begun && !watcher_guard(&guardian)) {
			kill(guardian.watcher, SIGKILL);
			_exit(0);
		}
		fd_close(&guardian.watcher_fd);
		/* A watcher that cannot work is not started again and again without a pause. */
		if (monotonic_now_ns() - began < RESTART_MS * NS_PER_MS && guardian.end == WATCH_END_EXITED &&
		    !round_wait(&guardian, RESTART_MS))
			_exit(0);
		if (!has_begun && !round_wait(&guardian, RESTART_MS))
			_exit(0);
	}
}
