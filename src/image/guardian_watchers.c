/* SPDX-License-Identifier: MIT */
/*
 * The end of a watcher. The end of its groups allows all that waits in them. But a thread that hangs in the open of an
 * event's file cannot be killed, or its death denies that start, and it keeps its group. So
 *
 *     - the watcher stays as long as one of its threads is in an open that may end well,
 *     - meanwhile helpers, processes of their own, remove the marks, and read and allow what is queued: a helper may
 *       hang in an open itself, and then another one goes on,
 *     - the guardian allows what was read. It does not know the numbers of these events: a thread that was killed
 *       during its read never stored one. It answers all numbers that there can be, again and again; the kernel
 *       ignores others.
 */
#include "image/guardian_watchers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/watch_message.h"
#include "image/watch_thread.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "os/proc.h"

#define ANSWER_NS (250 * NS_PER_MS)

/* NUMBER_MAX: the kernel gives the lowest number, and a watcher has fewer descriptors. */
enum { HELPER_MAX = 32, NUMBER_MAX = 2048, LEASE_S = 45, LEASE_MORE_S = 5 };

int guarded_start(struct guardian_watcher *guarded, struct watch_life *life, uint32_t deadline_ms)
{
	int keepers[2], own[2];
	pid_t self = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keepers) != 0)
		return -1;
	void *opens = mmap(NULL, sizeof(*guarded->opens), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool has_own = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own) == 0;
	pid_t pid = opens != MAP_FAILED && has_own ? fork() : -1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		_exit(watcher_run(keepers[1], own[1], life, opens, deadline_ms));
	}
	close(keepers[1]);
	if (has_own)
		close(own[1]);
	if (pid > 0) {
		*guarded = (struct guardian_watcher){
			.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), .socket = own[0], .opens = opens};
		memset(guarded->groups, -1, sizeof(guarded->groups));
		return keepers[0];
	}
	close(keepers[0]);
	if (has_own)
		close(own[0]);
	if (opens != MAP_FAILED)
		munmap(opens, sizeof(*guarded->opens));
	return -1;
}

void guarded_take_groups(struct guardian_watcher *guarded)
{
	struct watch_message message;
	int fd;
	while (watch_receive(guarded->socket, &message, &fd) > 0) {
		int *group = message.id < WATCHER_GROUP_MAX ? &guarded->groups[message.id] : &fd;
		if (*group >= 0)
			watch_thread_close(*group);
		if (group != &fd)
			*group = fd;
	}
}

static bool is_in_open(const struct guardian_watcher *guarded)
{
	for (int i = 0; i < WATCHER_READER_MAX; i++)
		if (__atomic_load_n(&guarded->opens->since_ns[i], __ATOMIC_SEQ_CST))
			return true;
	return false;
}

/* Return the time until the kernel ends a lease that somebody waits for. */
static uint64_t lease_ns(void)
{
	char text[16];
	proc_read_small("/proc/sys/fs/lease-break-time", text, sizeof(text));
	unsigned long seconds = *text ? strtoul(text, NULL, 10) : LEASE_S;
	return (seconds + LEASE_MORE_S) * NS_PER_S;
}

/* ---- helpers ---- */

static void allow(int group, int event)
{
	const struct fanotify_response response = {.fd = event, .response = FAN_ALLOW};
	ssize_t written = write(group, &response, sizeof(response));
	(void)written; /* it fails if there is no such event */
}

/* Remove the marks of the group and allow what is queued. */
static _Noreturn void help(int group)
{
	enum { ONLY = 3 };
	struct fanotify_event_metadata event;
	prctl(PR_SET_NAME, "xheap-helper");
	watch_priority_raise(WATCH_PRIORITY_LIFE);
	if (dup2(group, ONLY) < 0)
		_exit(1);
	close_range(ONLY + 1, ~0U, 0);
	fanotify_mark(ONLY, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL);
	fanotify_mark(ONLY, FAN_MARK_FLUSH | FAN_MARK_FILESYSTEM, 0, AT_FDCWD, NULL);
	while (read(ONLY, &event, sizeof(event)) == (ssize_t)sizeof(event)) {
		allow(ONLY, event.fd);
		if (event.fd >= 0)
			close(event.fd);
	}
	_exit(0);
}

static void helper_start(int group, unsigned *helpers)
{
	if (*helpers >= HELPER_MAX)
		return;
	pid_t pid = fork();
	if (pid == 0)
		help(group);
	*helpers += pid > 0;
}

/* ---- the end ---- */

void guarded_retire(struct guardian_watcher *guarded)
{
	guarded->kill_ns = monotonic_now_ns() + lease_ns();
	guarded->answer_ns = 0;
	__atomic_store_n(&guarded->opens->is_over, 1, __ATOMIC_SEQ_CST);
}

static void answer_all(const struct guardian_watcher *guarded)
{
	for (int i = 0; i < WATCHER_GROUP_MAX; i++)
		for (int event = 0; guarded->groups[i] >= 0 && event < NUMBER_MAX; event++)
			allow(guarded->groups[i], event);
}

void guarded_end(struct guardian_watcher *guarded, unsigned *helpers)
{
	uint64_t now = monotonic_now_ns();
	bool is_first = !guarded->answer_ns;
	/* It may have been in the midst of beginning with a group. */
	guarded_take_groups(guarded);
	if (!is_in_open(guarded) || now >= guarded->kill_ns)
		kill(guarded->pid, SIGKILL);
	for (int i = 0; i < WATCHER_GROUP_MAX; i++) {
		struct pollfd queue = {guarded->groups[i], POLLIN, 0};
		if (guarded->groups[i] >= 0 && (is_first || poll(&queue, 1, 0) > 0))
			helper_start(guarded->groups[i], helpers);
	}
	if (now < guarded->answer_ns)
		return;
	answer_all(guarded);
	guarded->answer_ns = now + ANSWER_NS;
}

void guarded_release(struct guardian_watcher *guarded)
{
	guarded_take_groups(guarded);
	for (int i = 0; i < WATCHER_GROUP_MAX; i++)
		if (guarded->groups[i] >= 0)
			watch_thread_close(guarded->groups[i]);
	close(guarded->socket);
	fd_close(&guarded->pidfd);
	munmap(guarded->opens, sizeof(*guarded->opens));
	*guarded = (struct guardian_watcher){.pid = 0};
}
