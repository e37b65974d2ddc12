/* SPDX-License-Identifier: MIT */
/* The instructions are those of classic BPF as seccomp allows them: Documentation/networking/filter.rst and
   seccomp(2). */
#include "inject/seccomp.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/registers.h"
#include "os/proc.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

enum { FILTERS_MAX = 64, INSTRUCTIONS_MAX = 4096 };

/* ---- running a filter ---- */

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
};

static bool load(struct machine *machine, const struct sock_filter *at, const struct seccomp_data *call)
{
	bool is_x = BPF_CLASS(at->code) == BPF_LDX;
	uint32_t value;
	switch (BPF_MODE(at->code)) {
	case BPF_IMM:
		value = at->k;
		break;
	case BPF_MEM:
		if (at->k >= BPF_MEMWORDS)
			return false;
		value = machine->memory[at->k];
		break;
	case BPF_LEN:
		value = sizeof(*call);
		break;
	case BPF_ABS:
		if (at->k > sizeof(*call) - sizeof(value) || at->k % sizeof(value) || is_x)
			return false;
		memcpy(&value, (const char *)call + at->k, sizeof(value));
		break;
	default:
		return false;
	}
	*(is_x ? &machine->x : &machine->a) = value;
	return true;
}

static bool compute(struct machine *machine, const struct sock_filter *at)
{
	uint32_t operand = BPF_SRC(at->code) == BPF_X ? machine->x : at->k;
	switch (BPF_OP(at->code)) {
	case BPF_ADD:
		machine->a += operand;
		return true;
	case BPF_SUB:
		machine->a -= operand;
		return true;
	case BPF_MUL:
		machine->a *= operand;
		return true;
	case BPF_DIV:
		machine->a = operand ? machine->a / operand : 0;
		return operand != 0;
	case BPF_MOD:
		machine->a = operand ? machine->a % operand : 0;
		return operand != 0;
	case BPF_OR:
		machine->a |= operand;
		return true;
	case BPF_AND:
		machine->a &= operand;
		return true;
	case BPF_XOR:
		machine->a ^= operand;
		return true;
	case BPF_LSH:
		machine->a = operand < 32 ? machine->a << operand : 0;
		return true;
	case BPF_RSH:
		machine->a = operand < 32 ? machine->a >> operand : 0;
		return true;
	case BPF_NEG:
		machine->a = 0 - machine->a;
		return true;
	default:
		return false;
	}
}

static bool is_true(const struct machine *machine, const struct sock_filter *at)
{
	uint32_t operand = BPF_SRC(at->code) == BPF_X ? machine->x : at->k;
	switch (BPF_OP(at->code)) {
	case BPF_JEQ:
		return machine->a == operand;
	case BPF_JGT:
		return machine->a > operand;
	case BPF_JGE:
		return machine->a >= operand;
	case BPF_JSET:
		return machine->a & operand;
	default:
		return false;
	}
}

uint32_t filter_run(const struct sock_filter *filter, uint32_t count, const struct seccomp_data *call)
{
	struct machine machine = {.a = 0};
	/* Jumps only go forward, so it ends. */
	for (uint32_t at = 0; at < count; at++) {
		const struct sock_filter *instruction = &filter[at];
		bool is_good = true;
		switch (BPF_CLASS(instruction->code)) {
		case BPF_LD:
		case BPF_LDX:
			is_good = load(&machine, instruction, call);
			break;
		case BPF_ST:
		case BPF_STX:
			is_good = instruction->k < BPF_MEMWORDS;
			if (is_good)
				machine.memory[instruction->k] =
					BPF_CLASS(instruction->code) == BPF_ST ? machine.a : machine.x;
			break;
		case BPF_ALU:
			is_good = compute(&machine, instruction);
			break;
		case BPF_JMP:
			if (BPF_OP(instruction->code) == BPF_JA)
				is_good = instruction->k < count - at;
			at += BPF_OP(instruction->code) == BPF_JA ? (is_good ? instruction->k : 0)
			      : is_true(&machine, instruction)    ? instruction->jt
								  : instruction->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(instruction->code) == BPF_A ? machine.a : instruction->k;
		case BPF_MISC:
			if (BPF_MISCOP(instruction->code) == BPF_TAX)
				machine.x = machine.a;
			else
				machine.a = machine.x;
			break;
		}
		if (!is_good)
			break;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* ---- our calls ---- */

enum { SOME_FD = 3, SOME_BYTES = 1 << 21, SOME_ADDRESS = 0x7f000000 };

#define CALL(name) SYS_##name, CPU_AUDIT_ARCH, SOME_ADDRESS

/* The calls that inject.c and remote.c make; numbers that are unknown beforehand stand for all of their kind. */
static const struct seccomp_data calls[] = {
	{CALL(openat), {(uint64_t)-100, SOME_ADDRESS, 02000002}},
	{CALL(mmap), {0, SOME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, SOME_FD, 0}},
	{CALL(mmap), {0, SOME_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0}},
	{CALL(mmap),
	 {SOME_ADDRESS, SOME_BYTES, PROT_READ | PROT_WRITE,
	  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_GROWSDOWN | MAP_FIXED, (uint64_t)-1, 0}},
	{CALL(mmap), {SOME_ADDRESS, SOME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, SOME_FD, 0}},
	{CALL(mmap),
	 {SOME_ADDRESS, SOME_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
	  (uint64_t)-1, 0}},
	{CALL(mmap),
	 {SOME_ADDRESS, SOME_BYTES, PROT_READ | PROT_EXEC,
	  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0}},
	{CALL(madvise), {SOME_ADDRESS, SOME_BYTES, MADV_WIPEONFORK}},
	{CALL(madvise), {SOME_ADDRESS, SOME_BYTES, MADV_DONTDUMP}},
	{CALL(munmap), {SOME_ADDRESS, SOME_BYTES}},
	{CALL(close), {SOME_FD}},
	{CALL(socketpair), {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, SOME_ADDRESS}},
	{CALL(recvmsg), {SOME_FD, SOME_ADDRESS, MSG_CMSG_CLOEXEC | MSG_DONTWAIT}},
};

/* The calls of the recorder itself, as src/recorder makes them. */
static const struct seccomp_data recorder_calls[] = {
	{CALL(mmap), {0, SOME_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0}},
	{CALL(mmap),
	 {SOME_ADDRESS, SOME_BYTES, PROT_READ | PROT_WRITE,
	  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_GROWSDOWN | MAP_FIXED, (uint64_t)-1, 0}},
	{CALL(munmap), {SOME_ADDRESS, SOME_BYTES}},
	{CALL(madvise), {SOME_ADDRESS, SOME_BYTES, MADV_DONTDUMP}},
	{CALL(msync), {SOME_ADDRESS, SOME_BYTES, MS_ASYNC}},
	{CALL(futex), {SOME_ADDRESS, FUTEX_WAIT, 1, SOME_ADDRESS}},
	{CALL(futex), {SOME_ADDRESS, FUTEX_WAKE, 1, 0}},
	{CALL(nanosleep), {SOME_ADDRESS, 0}},
	{CALL(clock_gettime), {CLOCK_MONOTONIC_RAW, SOME_ADDRESS}},
	{CALL(gettid), {0}},
	{CALL(getpid), {0}},
	{CALL(getppid), {0}},
	{CALL(prctl), {PR_SET_PTRACER, 1}},
	{CALL(faccessat), {(uint64_t)-100, SOME_ADDRESS, X_OK}},
	{CALL(rt_sigprocmask), {SIG_SETMASK, SOME_ADDRESS, SOME_ADDRESS, 8}},
	{CALL(rt_sigprocmask), {(uint64_t)-1, SOME_ADDRESS, 0, 8}},
	/* After a stop the kernel makes this call for a thread that waits in one of the others. */
	{CALL(restart_syscall), {0}},
};

static const struct seccomp_data restart_calls[] = {{CALL(restart_syscall), {0}}};

static const struct seccomp_data watch_calls[] = {{CALL(userfaultfd), {02004001}}, {CALL(close), {SOME_FD}}};

struct call_list {
	const struct seccomp_data *calls;
	size_t count;
	bool may_be_logged;
};

static int filter_allows(const struct sock_filter *filter, uint32_t count, const struct call_list *list, pid_t tid,
			 struct diag *diag)
{
	for (size_t i = 0; i < list->count; i++) {
		uint32_t answer = filter_run(filter, count, &list->calls[i]) & SECCOMP_RET_ACTION_FULL;
		if (answer != SECCOMP_RET_ALLOW && !(answer == SECCOMP_RET_LOG && list->may_be_logged))
			return diag_fail(
				diag, EPERM,
				"thread %d has a seccomp filter that does not allow system call %d, which is needed",
				(int)tid, list->calls[i].nr);
	}
	return 0;
}

/* Check that every filter of the thread allows all calls of a list. */
static int filters_allow(pid_t tid, const struct call_list *list, struct diag *diag)
{
	struct sock_filter *filter = malloc(INSTRUCTIONS_MAX * sizeof(*filter));
	int error = filter ? 0 : diag_fail(diag, ENOMEM, "no memory to read a seccomp filter");
	for (unsigned long i = 0; i < FILTERS_MAX && !error; i++) {
		long count = ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, tid, i, NULL);
		if (count < 0 && errno == ENOENT && i > 0)
			break;
		if (count <= 0 || count > INSTRUCTIONS_MAX ||
		    ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, tid, i, filter) != count)
			error = diag_fail(diag, EPERM,
					  "thread %d has a seccomp filter that cannot be read (%s) and could end its "
					  "process for a call that xheap needs",
					  (int)tid, count < 0 ? strerror(errno) : "too long");
		else
			error = filter_allows(filter, (uint32_t)count, list, tid, diag);
	}
	free(filter);
	return error;
}

int filter_check(pid_t tid, struct diag *diag)
{
	const struct call_list list = {calls, sizeof(calls) / sizeof(*calls), true};
	return proc_status_value(tid, "Seccomp") > 0 ? filters_allow(tid, &list, diag) : 0;
}

/* Return whether the thread has filters. All others of its process may wait for it: a tracer that may read filters
   learns that there are none far quicker than from the thread's status. */
static bool has_filters(pid_t tid)
{
	long count = ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, tid, 0, NULL);
	return count >= 0 || (errno != EINVAL && proc_status_value(tid, "Seccomp") > 0);
}

bool filter_allows_recorder(pid_t tid)
{
	const struct call_list list = {recorder_calls, sizeof(recorder_calls) / sizeof(*recorder_calls), false};
	return !has_filters(tid) || filters_allow(tid, &list, &(struct diag){""}) == 0;
}

bool filter_allows_restart(pid_t tid)
{
	const struct call_list list = {restart_calls, sizeof(restart_calls) / sizeof(*restart_calls), true};
	return !has_filters(tid) || filters_allow(tid, &list, &(struct diag){""}) == 0;
}

bool filter_allows_watch(pid_t tid)
{
	const struct call_list list = {watch_calls, sizeof(watch_calls) / sizeof(*watch_calls), false};
	return !has_filters(tid) || filters_allow(tid, &list, &(struct diag){""}) == 0;
}
