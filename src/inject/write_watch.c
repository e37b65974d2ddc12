/* SPDX-License-Identifier: MIT */
/*
 * userfaultfd(2) in its asynchronous mode: a page is protected by the scan of its process's pagemap, and a write to it
 * removes the protection. The descriptor belongs to the memory of the process that makes it, so a thread of the process
 * has to. It is taken from there at once: no thread runs while it has a number that the program may use.
 */
#include "inject/write_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "inject/crowd.h"
#include "inject/remote.h"
#include "inject/seccomp.h"
#include "os/fd.h"
#include "os/monotonic.h"

/* Of linux/userfaultfd.h, which has them from Linux 6.7 on. */
#define FEATURE_UNPOPULATED (UINT64_C(1) << 13)
#define FEATURE_ASYNC (UINT64_C(1) << 15)

/* The kernel has all faults of the process wait for an end of watching. It takes 0.1 ms for so much. */
#define SLICE_BYTES (UINT64_C(4) << 20)

/* UFFD_USER_MODE_ONLY, which needs no privilege, and what open() calls the others. */
enum { FLAGS = 1 | O_CLOEXEC | O_NONBLOCK };

/* Have the stopped thread make the descriptor, and take it. */
static int descriptor_take(struct remote *remote, pid_t pid, struct diag *diag)
{
	const int64_t number = remote_call(remote, SYS_userfaultfd, FLAGS, 0, 0, 0, 0, 0);
	if (number < 0)
		return diag_fail(diag, (int)-number, "process %d cannot have its writes watched: %s", (int)pid,
				 strerror((int)-number));
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	const int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, (int)number, 0);
	const int error = fd < 0 ? diag_errno(diag, "cannot watch the writes of process %d", (int)pid) : fd;
	fd_close(&process);
	remote_call(remote, SYS_close, (uint64_t)number, 0, 0, 0, 0, 0);
	return error;
}

/* Stop the others meanwhile. Return the descriptor, or a negative errno. */
static int descriptor_make(struct crowd *crowd, struct remote *remote, pid_t caller, struct diag *diag)
{
	if (!filter_allows_watch(caller))
		return diag_fail(
			diag, EPERM,
			"a seccomp filter of process %d does not allow userfaultfd, which tells what it writes",
			(int)crowd->pid);
	int error = crowd_stop_others(crowd, caller, diag);
	if (error)
		return error;
	error = descriptor_take(remote, crowd->pid, diag);
	crowd_others_go_on(crowd, caller);
	return error;
}

static int crowd_descriptor_make(struct crowd *crowd, uint64_t *pause_ns, struct diag *diag)
{
	struct remote remote;
	struct urgency before = urgency_begin();
	const uint64_t began_ns = monotonic_now_ns();
	struct stand *stand = calls_begin(crowd, &remote, diag);
	const pid_t caller = stand ? stand->tid : 0;
	const int fd = stand ? descriptor_make(crowd, &remote, caller, diag) : -EBUSY;
	if (stand)
		calls_end(&remote, crowd, caller);
	*pause_ns += monotonic_now_ns() - began_ns;
	urgency_end(&before);
	return fd;
}

int write_watch_begin(struct write_watch *watch, pid_t pid, uint64_t *pause_ns, struct diag *diag)
{
	struct crowd crowd = {.pid = pid};
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_ASYNC | FEATURE_UNPOPULATED};
	*watch = (struct write_watch){.fd = -1};
	int error = crowd_seize(&crowd, diag);
	error = error ? error : (watch->fd = crowd_descriptor_make(&crowd, pause_ns, diag));
	for (int i = 1; i < CROWD_TRIES && error == -EBUSY; i++) {
		crowd_wait(&crowd, CROWD_BETWEEN_TRIES_NS);
		error = watch->fd = crowd_descriptor_make(&crowd, pause_ns, diag);
	}
	crowd_leave(&crowd);
	if (error < 0)
		return error;
	if (!ioctl(watch->fd, UFFDIO_API, &api))
		return 0;
	error = diag_errno(diag, "this kernel does not tell which pages a process writes to");
	fd_close(&watch->fd);
	return error;
}

void write_watch_add(struct write_watch *watch, uint64_t low, uint64_t high)
{
	struct uffdio_register asked = {.range = {low, high - low}, .mode = UFFDIO_REGISTER_MODE_WP};
	/* Memory that is gone, or that the program watches by itself, is not watched. */
	if (low >= high || ioctl(watch->fd, UFFDIO_REGISTER, &asked))
		return;
	memory_grow(watch->ranges, watch->count, watch->capacity);
	watch->ranges[watch->count++] = (struct watched_range){low, high};
}

void write_watch_end(struct write_watch *watch)
{
	for (size_t i = 0; i < watch->count && watch->fd >= 0; i++)
		for (uint64_t low = watch->ranges[i].low, high; low < watch->ranges[i].high; low = high) {
			const uint64_t end = (low | (SLICE_BYTES - 1)) + 1;
			high = end < watch->ranges[i].high ? end : watch->ranges[i].high;
			ioctl(watch->fd, UFFDIO_UNREGISTER, &(struct uffdio_range){low, high - low});
		}
	fd_close(&watch->fd);
	free(watch->ranges);
	*watch = (struct write_watch){.fd = -1};
}
