/* SPDX-License-Identifier: MIT */
#include "push/push_registered.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "session/directory/directory.h"

enum {
	SESSION_NAME_BYTES = 128,
	WORDS_BYTES = 1024,
	WORDS_MAX = WORDS_BYTES / 2,
	PUSHED_MAX = 256, /* at once; a process for each */
	LOOK_MS = 1000,
};
/* After a command that has failed: the session may be dead, or not quite there. */
#define AGAIN_NS (5 * NS_PER_S)

struct pushed {
	char session[SESSION_NAME_BYTES];
	pid_t pid;         /* of the command; 0: it has ended */
	uint64_t again_ns; /* then: when the session is looked at again */
};

struct push_list {
	push_find *find;
	struct pushed *items;
	size_t count, capacity;
};

/* ---- one session ---- */

_Noreturn static void become(char *session, char *words, pid_t parent)
{
	char *list[WORDS_MAX + 4] = {"xheap", "push", session, "--wait"}, *word;
	size_t count = 4;
	sigset_t none;
	while ((word = strsep(&words, " \t")))
		if (*word && count < WORDS_MAX + 3)
			list[count++] = word;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent)
		execv("/proc/self/exe", list);
	_exit(127);
}

static void pushed_begin(struct pushed *pushed, char *words)
{
	const pid_t parent = getpid(), pid = fork();
	if (!pid)
		become(pushed->session, words, parent);
	pushed->pid = pid > 0 ? pid : 0;
	pushed->again_ns = monotonic_now_ns() + AGAIN_NS;
}

static bool pushed_is_known(const struct push_list *all, const char *session)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->items[i].session, session))
			return true;
	return false;
}

/* ---- all of them ---- */

static void look_at(void *cookie, const char *session)
{
	struct push_list *all = cookie;
	char words[WORDS_BYTES];
	if (pushed_is_known(all, session) || all->count == PUSHED_MAX || strlen(session) >= SESSION_NAME_BYTES ||
	    !all->find(session, words, sizeof(words)))
		return;
	memory_grow(all->items, all->count, all->capacity);
	struct pushed *pushed = &all->items[all->count++];
	strcpy(pushed->session, session);
	pushed_begin(pushed, words);
}

/* Take what has ended. A session whose command has failed is looked at again after a while. */
static void ends_take(struct push_list *all)
{
	const uint64_t now = monotonic_now_ns();
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		for (size_t i = 0; i < all->count; i++)
			if (all->items[i].pid == pid) {
				all->items[i].pid = 0;
				all->items[i].again_ns = status ? now + AGAIN_NS : 0;
			}
	for (size_t i = all->count; i-- > 0;)
		if (!all->items[i].pid && now >= all->items[i].again_ns)
			all->items[i] = all->items[--all->count];
}

/* Wait for what ends, a signal, or the next look. Return whether a signal asks for the end. */
static bool wait_for_signal(int signals)
{
	struct pollfd waiting = {signals, POLLIN, 0};
	struct signalfd_siginfo signal;
	return poll(&waiting, 1, LOOK_MS) > 0 && read(signals, &signal, sizeof(signal)) == sizeof(signal) &&
	       signal.ssi_signo != SIGCHLD;
}

static bool any_runs(const struct push_list *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].pid)
			return true;
	return false;
}

static void end_all(struct push_list *all, int signals)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].pid)
			kill(all->items[i].pid, SIGTERM);
	for (ends_take(all); any_runs(all); ends_take(all))
		wait_for_signal(signals);
}

int push_registered(push_find *find)
{
	struct push_list all = {.find = find};
	sigset_t taken;
	sigemptyset(&taken);
	sigaddset(&taken, SIGTERM);
	sigaddset(&taken, SIGINT);
	sigaddset(&taken, SIGCHLD);
	sigprocmask(SIG_BLOCK, &taken, NULL);
	int signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return -errno;
	do {
		ends_take(&all);
		session_each(look_at, &all);
	} while (!wait_for_signal(signals));
	end_all(&all, signals);
	fd_close(&signals);
	free(all.items);
	return 0;
}
