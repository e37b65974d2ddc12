/* SPDX-License-Identifier: MIT */
#include "os/identity.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/limits.h"
#include "os/proc.h"

struct identity identity_take(pid_t pid)
{
	struct identity identity = {.pid = pid, .pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1};
	/* There are as many of these descriptors as processes. They must leave some for files that are open shortly, or
	   for recording a process. */
	if (limits_is_last_descriptor(identity.pidfd)) {
		close(identity.pidfd);
		identity.pidfd = -1;
	}
	if (pid && identity.pidfd < 0)
		identity.start_time = proc_start_time(pid);
	return identity;
}

void identity_drop(struct identity *identity)
{
	if (identity->pidfd >= 0)
		close(identity->pidfd);
	*identity = IDENTITY_NONE;
}

bool identity_is_known(const struct identity *identity)
{
	return identity->pidfd >= 0 || identity->start_time;
}

/* Return whether there is no process of this number at all. */
static bool is_nobody(pid_t pid)
{
	return !pid || (kill(pid, 0) != 0 && errno == ESRCH);
}

bool identity_has_ended(const struct identity *identity)
{
	struct pollfd descriptor = {.fd = identity->pidfd, .events = POLLIN};
	if (identity->pidfd >= 0)
		return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & (POLLIN | POLLHUP));
	uint64_t start_time = identity->pid ? proc_start_time(identity->pid) : 0;
	/* Without a descriptor to read that with, as well. */
	if (!start_time)
		return is_nobody(identity->pid);
	return (identity->start_time && start_time != identity->start_time) || proc_has_ended(identity->pid);
}

bool identity_is_there(const struct identity *identity)
{
	if (identity->pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, identity->pidfd, 0, NULL, 0) == 0 || errno == EPERM;
	return identity->start_time && proc_start_time(identity->pid) == identity->start_time;
}

void identity_send_signal(const struct identity *identity, int signal)
{
	if (identity->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, identity->pidfd, signal, NULL, 0);
	else if (identity_is_there(identity))
		kill(identity->pid, signal);
}
