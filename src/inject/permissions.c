/* SPDX-License-Identifier: MIT */
/* The reasons for which the kernel refuses tracing. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inject/inject.h"
#include "os/proc.h"

/* The prohibitions of the values of kernel.yama.ptrace_scope, and the remedies. */
static const char *const yama_scopes[] = {
	[1] = "only its ancestors and the processes that it names may trace it; start it by xheap, or run xheap as "
	      "root, or, as root, allow it for one's own processes by sysctl kernel.yama.ptrace_scope=0",
	[2] = "only root may trace; run xheap as root, or, as root, allow it for one's own processes by sysctl "
	      "kernel.yama.ptrace_scope=0",
	[3] = "nobody may trace until the machine is restarted with a smaller value",
};

/* Return the value of Yama's scope that forbids to trace a process; 0: something else forbids it. */
static unsigned yama_forbids(pid_t pid)
{
	enum { ALL = 3 };
	char text[16];
	struct stat status;
	proc_read_small("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
	unsigned scope = *text ? (unsigned)(*text - '0') : 0;
	bool is_own = stat(proc_path(pid, "%s", "").text, &status) == 0 && status.st_uid == geteuid() && geteuid() != 0;
	return scope <= ALL && (is_own || scope == ALL) ? scope : 0;
}

/* Return whether this process may not even ask for it: no process has this number, as the kernel would say. */
static bool filter_forbids(void)
{
	return ptrace(PTRACE_SEIZE, INT_MAX, NULL, NULL) != 0 && errno != ESRCH;
}

int inject_cannot_trace_thread(pid_t pid, pid_t tid, int error, struct diag *diag)
{
	int64_t tracer = proc_status_value(tid, "TracerPid");
	if (error == ESRCH)
		return diag_fail(diag, ESRCH, "there is no process %d", (int)pid);
	if (tracer > 0)
		return diag_fail(diag, EPERM, "process %d is traced by process %d (a debugger?) already", (int)pid,
				 (int)tracer);
	if (error == ETIMEDOUT)
		return diag_fail(diag, EBUSY,
				 "process %d cannot be traced: one of its threads is in an exec that waits for a file",
				 (int)pid);
	if (error != EPERM && error != EACCES)
		return diag_fail(diag, error, "process %d cannot be traced: %s", (int)pid, strerror(error));
	if (filter_forbids())
		return diag_fail(diag, EPERM,
				 "process %d may not be traced: a seccomp filter of xheap's own process forbids "
				 "ptrace; a container gets the right by --cap-add SYS_PTRACE",
				 (int)pid);
	unsigned scope = yama_forbids(pid);
	if (scope)
		return diag_fail(diag, EPERM, "process %d may not be traced: kernel.yama.ptrace_scope is %u: %s",
				 (int)pid, scope, yama_scopes[scope]);
	return diag_fail(
		diag, EPERM,
		"process %d may not be traced: it is another user's, or has privileges of its own; root may record it",
		(int)pid);
}

int inject_cannot_trace(pid_t pid, int error, struct diag *diag)
{
	return inject_cannot_trace_thread(pid, pid, error, diag);
}
