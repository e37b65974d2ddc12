/* SPDX-License-Identifier: MIT */
#include "inject/remote.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/proc.h"

bool remote_read(int memory, uint64_t address, void *data, size_t size)
{
	return pread(memory, data, size, (off_t)address) == (ssize_t)size;
}

bool remote_write(int memory, uint64_t address, const void *data, size_t size)
{
	return pwrite(memory, data, size, (off_t)address) == (ssize_t)size;
}

/* The address of the bytes of a syscall instruction in the vdso; 0 when it has none. */
static uint64_t find_syscall(const struct remote *remote)
{
	uint64_t vdso = proc_auxv(remote->pid, AT_SYSINFO_EHDR);
	unsigned char page[4096];
	for (int i = 0; vdso && i < 2; i++) {
		if (!remote_read(remote->memory, vdso + (uint64_t)i * sizeof(page), page, sizeof(page)))
			break;
		const unsigned char *found = memmem(page, sizeof(page), "\x0f\x05", 2);
		if (found)
			return vdso + (uint64_t)i * sizeof(page) + (uint64_t)(found - page);
	}
	return 0;
}

/* Go on until the trap that it runs into: by a step, over one instruction. 0, or -ESRCH when the process is gone. Signals that arrive
 * meanwhile are sent again at the end. */
static int go_on(struct remote *remote, enum __ptrace_request how)
{
	for (;;) {
		int status;
		if (ptrace(how, remote->pid, 0, 0) != 0)
			return -ESRCH;
		pid_t got;
		do
			got = waitpid(remote->pid, &status, __WALL);
		while (got < 0 && errno == EINTR);
		if (got != remote->pid || !WIFSTOPPED(status))
			return -ESRCH;
		if (WSTOPSIG(status) == SIGTRAP)
			return 0;
		if (status >> 16 == 0)
			remote->postponed |= 1ull << (WSTOPSIG(status) - 1);
	}
}

int remote_begin(struct remote *remote, pid_t pid, struct diag *diag)
{
	char path[64];
	memset(remote, 0, sizeof(*remote));
	remote->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	remote->memory = open(path, O_RDWR | O_CLOEXEC);
	if (remote->memory < 0)
		return diag_errno(diag, "cannot open the memory of process %d", (int)pid);
	/* The stop is inside execve, whose end would overwrite what we set: go to where user code begins. */
	if (go_on(remote, PTRACE_SINGLESTEP) != 0 || ptrace(PTRACE_GETREGS, pid, 0, &remote->registers) != 0) {
		int error = diag_errno(diag, "cannot read the registers of process %d", (int)pid);
		close(remote->memory);
		return error;
	}
	remote->syscall_at = find_syscall(remote);
	if (!remote->syscall_at) {
		close(remote->memory);
		return diag_fail(diag, ENOTSUP, "process %d has no vdso to make system calls from", (int)pid);
	}
	return 0;
}

int64_t remote_call(struct remote *remote, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	struct user_regs_struct registers = remote->registers;
	registers.orig_rax = (unsigned long long)-1;
	registers.rax = (unsigned long long)number;
	registers.rdi = a;
	registers.rsi = b;
	registers.rdx = c;
	registers.r10 = d;
	registers.r8 = e;
	registers.r9 = f;
	registers.rip = remote->syscall_at;
	if (ptrace(PTRACE_SETREGS, remote->pid, 0, &registers) != 0)
		return -ESRCH;
	if (go_on(remote, PTRACE_SINGLESTEP) != 0 || ptrace(PTRACE_GETREGS, remote->pid, 0, &registers) != 0)
		return -ESRCH;
	return (int64_t)registers.rax;
}

/* ---- several calls at once ---- */

/* Registers by their numbers: of a call's arguments, and those that a call leaves alone. */
enum { RAX = 0, RBX = 3 };
static const uint8_t argument_registers[6] = {7, 6, 2, 10, 8, 9};
static const uint8_t kept_registers[REMOTE_KEPT_MAX] = {12, 13, 14, 15, RBX};

struct program { unsigned char code[REMOTE_BATCH_BYTES]; size_t size; };

static void put(struct program *program, const void *bytes, size_t size)
{
	memcpy(program->code + program->size, bytes, size);
	program->size += size;
}

/* movabs $value, %to */
static void put_constant(struct program *program, uint8_t to, uint64_t value)
{
	put(program, (uint8_t[]){0x48 | to >> 3, 0xb8 | (to & 7)}, 2);
	put(program, &value, sizeof(value));
}

/* mov (0x89) or add (0x01) %from, %to */
static void put_registers(struct program *program, uint8_t opcode, uint8_t from, uint8_t to)
{
	put(program, (uint8_t[]){0x48 | (from >> 3) << 2 | to >> 3, opcode, 0xc0 | (from & 7) << 3 | (to & 7)}, 3);
}

/* kept: the register of each call's result */
static void put_step(struct program *program, const struct remote_step *step, const uint8_t *kept)
{
	for (int i = 0; i < 6; i++) {
		const struct remote_argument *argument = &step->argument[i];
		put_constant(program, argument_registers[i], argument->value);
		if (argument->plus)
			put_registers(program, 0x01, kept[argument->plus - 1], argument_registers[i]);
	}
	put_constant(program, RAX, (uint64_t)step->number);
	put(program, "\x0f\x05", 2);
}

/* Room for a call with six arguments, each added to a result, and for keeping its own. */
_Static_assert(REMOTE_BATCH_MAX * (6 * (10 + 3) + 10 + 2 + 3) + 1 <= REMOTE_BATCH_BYTES, "a batch fits");

static int64_t register_value(const struct user_regs_struct *registers, uint8_t number)
{
	const unsigned long long values[] = {[RBX] = registers->rbx, [12] = registers->r12, [13] = registers->r13,
					     [14] = registers->r14, [15] = registers->r15};
	return (int64_t)values[number];
}

int remote_batch(struct remote *remote, uint64_t at, const struct remote_step *steps, uint32_t count, int64_t results[REMOTE_BATCH_MAX])
{
	struct program program = {.size = 0};
	uint8_t kept[REMOTE_BATCH_MAX];
	uint32_t kept_count = 0;
	assert(count <= REMOTE_BATCH_MAX);
	for (uint32_t i = 0; i < count; i++) {
		put_step(&program, &steps[i], kept);
		if (!steps[i].keep)
			continue;
		assert(kept_count < REMOTE_KEPT_MAX);
		kept[i] = kept_registers[kept_count++];
		put_registers(&program, 0x89, RAX, kept[i]);
	}
	put(&program, "\xcc", 1);
	struct user_regs_struct registers = remote->registers;
	registers.orig_rax = (unsigned long long)-1;
	registers.rip = at;
	if (!remote_write(remote->memory, at, program.code, program.size))
		return -EFAULT;
	if (ptrace(PTRACE_SETREGS, remote->pid, 0, &registers) != 0 || go_on(remote, PTRACE_CONT) != 0 ||
	    ptrace(PTRACE_GETREGS, remote->pid, 0, &registers) != 0)
		return -ESRCH;
	if (registers.rip != at + program.size)
		return -EFAULT;
	for (uint32_t i = 0; i < count; i++)
		if (steps[i].keep)
			results[i] = register_value(&registers, kept[i]);
	return 0;
}

/* ---- a descriptor ---- */

/* Send a descriptor of the same file into `to`. */
static int send_descriptor(int to, int fd)
{
	/* With an open file of its own in the target, the file's use there can be told from ours. */
	char path[40], byte = 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, O_RDWR | O_CLOEXEC);
	if (again < 0)
		return -errno;
	union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control = {.header = {
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};
	memcpy(CMSG_DATA(&control.header), &again, sizeof(again));
	int error = sendmsg(to, &message, MSG_NOSIGNAL) == 1 ? 0 : -errno;
	close(again);
	return error;
}

/* Its end of the pair, reached from here. */
static int send_over(const struct remote *remote, int socket, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, remote->pid, 0);
	int here = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, socket, 0) : -1;
	int error = here >= 0 ? send_descriptor(here, fd) : -errno;
	if (here >= 0)
		close(here);
	if (process >= 0)
		close(process);
	return error;
}

/* What it calls recvmsg with, and where the answer lies. */
struct inbox {
	struct msghdr message;
	struct iovec data;
	union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control;
	char byte;
};
_Static_assert(sizeof(struct inbox) <= REMOTE_PLACE_BYTES, "it fits");

static int64_t receive(struct remote *remote, uint64_t place, int socket)
{
	struct inbox inbox = {.message = {.msg_iov = (struct iovec *)(place + offsetof(struct inbox, data)), .msg_iovlen = 1,
					  .msg_control = (void *)(place + offsetof(struct inbox, control)),
					  .msg_controllen = sizeof(inbox.control.bytes)},
			      .data = {(void *)(place + offsetof(struct inbox, byte)), 1}};
	if (!remote_write(remote->memory, place, &inbox, sizeof(inbox)))
		return -EFAULT;
	int64_t got = remote_call(remote, SYS_recvmsg, (uint64_t)socket, place, MSG_CMSG_CLOEXEC | MSG_DONTWAIT, 0, 0, 0);
	if (got < 0)
		return got;
	int fd = -EBADF;
	if (remote_read(remote->memory, place, &inbox, sizeof(inbox)) && inbox.control.header.cmsg_len == CMSG_LEN(sizeof(int)) &&
	    inbox.control.header.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&inbox.control.header), sizeof(fd));
	return fd;
}

int64_t remote_pass(struct remote *remote, uint64_t place, int fd)
{
	int pair[2];
	int64_t result = remote_call(remote, SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, place, 0, 0);
	if (result < 0)
		return result;
	if (!remote_read(remote->memory, place, pair, sizeof(pair)))
		return -EFAULT;
	result = send_over(remote, pair[0], fd);
	if (result == 0)
		result = receive(remote, place, pair[1]);
	remote_call(remote, SYS_close, (uint64_t)pair[0], 0, 0, 0, 0, 0);
	remote_call(remote, SYS_close, (uint64_t)pair[1], 0, 0, 0, 0, 0);
	return result;
}

void remote_end(struct remote *remote)
{
	ptrace(PTRACE_SETREGS, remote->pid, 0, &remote->registers);
	for (int signal = 1; signal <= 64; signal++)
		if (remote->postponed >> (signal - 1) & 1)
			kill(remote->pid, signal);
	close(remote->memory);
}
