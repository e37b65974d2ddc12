/* SPDX-License-Identifier: MIT */
#include "inject/remote.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/registers.h"
#include "os/monotonic.h"
#include "os/proc.h"

bool remote_read(int memory, uint64_t address, void *data, size_t size)
{
	return pread(memory, data, size, (off_t)address) == (ssize_t)size;
}

bool remote_write(int memory, uint64_t address, const void *data, size_t size)
{
	return pwrite(memory, data, size, (off_t)address) == (ssize_t)size;
}

bool remote_read_segments(int memory, uint64_t base, Elf64_Ehdr *header, Elf64_Phdr segments[REMOTE_SEGMENT_MAX])
{
	return base && remote_read(memory, base, header, sizeof(*header)) &&
	       memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_phentsize == sizeof(segments[0]) &&
	       header->e_phnum > 0 && header->e_phnum <= REMOTE_SEGMENT_MAX &&
	       remote_read(memory, base + header->e_phoff, segments, header->e_phnum * sizeof(segments[0]));
}

/*
 * We may be killed at any moment, and then the process runs on from wherever it stands, by what it has in its
 * registers. So no instruction is stepped over (the flag for that would stay) and no trap is left on its way: it stops
 * at the kernel's doors only, and behind whatever it executes for us lie instructions that make its registers what they
 * were and go to its entry.
 *
 * These instructions, the gate, lie in bytes that nobody executes: behind the code of an image in its last page, or
 * behind the kernel's own, until there is memory of ours. Where at an exec there are none, the first instructions of
 * the program make way. Nothing could put them back but we, so the kernel ends such a process when we are killed
 * meanwhile, before the process has run one instruction of its own.
 */
enum { SYSCALL_STOP = SIGTRAP | 0x80, PAGE = 4096, EXEC_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD };

/* At an exec all registers are 0 but the stack pointer, which is never touched. */
static const unsigned char clear_arguments[15] = {0x31, 0xff, 0x31, 0xf6, 0x31, 0xd2, 0x4d, 0x31,
						  0xd2, 0x4d, 0x31, 0xc0, 0x4d, 0x31, 0xc9};

/* movabs $entry, %r11; jmp *%r11 */
static void make_jump(unsigned char code[13], uint64_t entry)
{
	memcpy(code, "\x49\xbb", 2);
	memcpy(code + 2, &entry, sizeof(entry));
	memcpy(code + 10, "\x41\xff\xe3", 3);
}

/* Results by which the kernel makes a call that was interrupted begin again (include/linux/errno.h), and the call that
   goes on with one. */
enum { RESTART_SYS = -512, RESTART_NO_INTERRUPT = -513, RESTART_NO_HANDLER = -514, RESTART_BLOCK = -516 };

/* The registers with which a thread goes on without the kernel's help. */
static struct user_regs_struct registers_to_go_on(const struct remote *remote)
{
	struct user_regs_struct registers = remote->registers;
	int64_t result = registers_result(&registers);
	bool is_again = result == RESTART_SYS || result == RESTART_NO_INTERRUPT || result == RESTART_NO_HANDLER;
	if (registers_call(&registers) < 0 || (!is_again && result != RESTART_BLOCK))
		return registers;
	registers_repeat_call(&registers, is_again ? registers_call(&registers) : SYS_restart_syscall);
	return registers;
}

struct gate {
	unsigned char code[REMOTE_GATE_BYTES];
	size_t size;
};

static void gate_put(struct gate *gate, const void *bytes, size_t size)
{
	assert(gate->size + size <= sizeof(gate->code));
	memcpy(gate->code + gate->size, bytes, size);
	gate->size += size;
}

static void gate_put_register(struct gate *gate, unsigned number, uint64_t value)
{
	assert(number < 16);
	gate_put(gate, (unsigned char[]){0x48 | number >> 3, 0xb8 | (number & 7)}, 2);
	gate_put(gate, &value, sizeof(value));
}

/* push $flags; popfq, below the red zone; all registers; jmp *(%rip) */
static void gate_put_way_back(struct gate *gate, const struct user_regs_struct *registers)
{
	enum { RSP = 4, BELOW = 512 };
	const uint64_t values[] = {registers->rax, registers->rcx, registers->rdx, registers->rbx,
				   registers->rsp, registers->rbp, registers->rsi, registers->rdi,
				   registers->r8,  registers->r9,  registers->r10, registers->r11,
				   registers->r12, registers->r13, registers->r14, registers->r15};
	uint32_t flags = (uint32_t)registers->eflags;
	gate_put_register(gate, RSP, (registers->rsp - BELOW) & ~15ull);
	gate_put(gate, "\x68", 1);
	gate_put(gate, &flags, sizeof(flags));
	gate_put(gate, "\x9d", 1);
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++)
		gate_put_register(gate, i, values[i]);
	gate_put(gate, "\xff\x25\0\0\0", 6);
	gate_put(gate, &registers->rip, sizeof(registers->rip));
}

/* syscall, and on to where it was. */
static bool gate_write(const struct remote *remote, uint64_t at)
{
	struct gate gate = {.size = 0};
	gate_put(&gate, "\x0f\x05", 2);
	if (remote->is_running) {
		struct user_regs_struct registers = registers_to_go_on(remote);
		gate_put_way_back(&gate, &registers);
	} else {
		unsigned char jump[13];
		make_jump(jump, registers_pc(&remote->registers));
		gate_put(&gate, clear_arguments, sizeof(clear_arguments));
		gate_put(&gate, jump, sizeof(jump));
	}
	return remote_write(remote->memory, at, gate.code, gate.size);
}

/* Bytes that a gate takes. */
static uint64_t gate_bytes(const struct remote *remote)
{
	enum { AT_EXEC_BYTES = 32 };
	return remote->is_running ? REMOTE_GATE_BYTES : AT_EXEC_BYTES;
}

bool remote_find_spare(int memory, uint64_t base, uint64_t bytes, struct remote_spare *spare)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[REMOTE_SEGMENT_MAX];
	if (!remote_read_segments(memory, base, &header, segments))
		return false;
	uint64_t bias = header.e_type == ET_DYN ? base : 0;
	for (int i = 0; i < header.e_phnum; i++) {
		uint64_t end = (segments[i].p_vaddr + segments[i].p_memsz + 15) & ~15ull,
			 page_end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
		if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X) ||
		    segments[i].p_memsz != segments[i].p_filesz || page_end - end < bytes)
			continue;
		*spare = (struct remote_spare){bias + end, bias + page_end};
		return true;
	}
	return false;
}

static uint64_t spare_of(const struct remote *remote, uint64_t base)
{
	struct remote_spare spare;
	return remote_find_spare(remote->memory, base, gate_bytes(remote), &spare) ? spare.low : 0;
}

static uint64_t behind_loader(const struct remote *remote)
{
	return spare_of(remote, proc_auxv(remote->pid, AT_BASE));
}

static uint64_t behind_executable(const struct remote *remote)
{
	return spare_of(remote, proc_auxv(remote->pid, AT_PHDR) & ~(uint64_t)(PAGE - 1));
}

static uint64_t behind_any_image(const struct remote *remote)
{
	struct proc_map *maps = NULL;
	int count = proc_read_maps(remote->pid, &maps);
	uint64_t at = 0;
	for (int i = 0; i < count && !at; i++)
		if (maps[i].inode && !maps[i].offset)
			at = spare_of(remote, maps[i].low);
	free(maps);
	return at;
}

/* The vDSO's sections, which debuggers read, may lie first behind its code: its last bytes. */
static uint64_t behind_kernel_code(const struct remote *remote)
{
	struct remote_spare spare;
	uint64_t bytes = gate_bytes(remote);
	bool is_there = remote_find_spare(remote->memory, proc_auxv(remote->pid, AT_SYSINFO_EHDR), bytes, &spare);
	return is_there ? (spare.high - bytes) & ~15ull : 0;
}

static uint64_t at_first_instruction(const struct remote *remote)
{
	return remote->is_running ? 0 : registers_pc(&remote->registers);
}

/* A place for the gate until there is memory of ours. */
static int gate_borrow(struct remote *remote)
{
	static uint64_t (*const places[])(const struct remote *) = {behind_loader, behind_executable, behind_any_image,
								    behind_kernel_code, at_first_instruction};
	uint64_t at = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !at; i++)
		at = places[i](remote);
	if (!at || !remote_read(remote->memory, at, remote->borrowed, gate_bytes(remote)))
		return -ENOTSUP;
	if (at == at_first_instruction(remote) &&
	    ptrace(PTRACE_SETOPTIONS, remote->pid, 0, EXEC_OPTIONS | PTRACE_O_EXITKILL) != 0)
		return -ENOTSUP;
	if (!gate_write(remote, at))
		return -ENOTSUP;
	remote->gate = remote->borrowed_at = at;
	return 0;
}

/* The borrowed bytes back. */
static void gate_return(struct remote *remote)
{
	if (!remote->borrowed_at)
		return;
	remote_write(remote->memory, remote->borrowed_at, remote->borrowed, gate_bytes(remote));
	if (remote->borrowed_at == at_first_instruction(remote))
		ptrace(PTRACE_SETOPTIONS, remote->pid, 0, EXEC_OPTIONS);
	remote->borrowed_at = 0;
}

void remote_own_gate(struct remote *remote, uint64_t at)
{
	if (!gate_write(remote, at))
		return;
	remote->gate = at;
	gate_return(remote);
}

#define BIT(signal) (1ull << ((signal)-1))

/* As the kernel does with pending ones, going on takes back a stop, and a stop takes back going on. */
static void postpone(struct remote *remote, int signal)
{
	const uint64_t stops = BIT(SIGSTOP) | BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU);
	if (signal == SIGCONT)
		remote->postponed &= ~stops;
	if (stops & BIT(signal))
		remote->postponed &= ~BIT(SIGCONT);
	remote->postponed |= BIT(signal);
}

/* Go on until the next stop of this kind. 0, or -ESRCH when the process is gone. Signals that arrive meanwhile are sent
 * again at the end. */
static int go_on(struct remote *remote, enum __ptrace_request how, int stop)
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
		if (WSTOPSIG(status) == stop)
			return 0;
		if (status >> 16 == 0)
			postpone(remote, WSTOPSIG(status));
	}
}

/* Between a beginning and its end, of all threads. */
static uint32_t remote_count;

int remote_begin(struct remote *remote, pid_t pid, struct diag *diag)
{
	char path[64];
	memset(remote, 0, sizeof(*remote));
	remote->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	remote->memory = open(path, O_RDWR | O_CLOEXEC);
	if (remote->memory < 0)
		return diag_errno(diag, "cannot open the memory of process %d", (int)pid);
	/* The stop is inside execve, whose end would overwrite what we set: go to the call's exit. */
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, EXEC_OPTIONS) != 0 || go_on(remote, PTRACE_SYSCALL, SYSCALL_STOP) != 0 ||
	    !registers_read(pid, &remote->registers)) {
		int error = diag_errno(diag, "cannot read the registers of process %d", (int)pid);
		close(remote->memory);
		return error;
	}
	if (gate_borrow(remote) != 0) {
		close(remote->memory);
		return diag_fail(diag, ENOTSUP,
				 "process %d has no code whose bytes can be borrowed to make system calls from",
				 (int)pid);
	}
	__atomic_fetch_add(&remote_count, 1, __ATOMIC_ACQ_REL);
	return 0;
}

int remote_begin_running(struct remote *remote, pid_t tid, struct diag *diag)
{
	char path[64];
	const uint64_t all = ~(uint64_t)0;
	*remote = (struct remote){.pid = tid, .is_running = true};
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	remote->memory = open(path, O_RDWR | O_CLOEXEC);
	if (remote->memory < 0)
		return diag_errno(diag, "cannot open the memory of process %d", (int)tid);
	int error = 0;
	if (!registers_read(tid, &remote->registers) ||
	    ptrace(PTRACE_GETSIGMASK, tid, sizeof(remote->signal_mask), &remote->signal_mask) != 0)
		error = diag_errno(diag, "cannot read the registers of thread %d", (int)tid);
	else if (gate_borrow(remote) != 0)
		error = diag_fail(diag, ENOTSUP, "process %d has no room behind its code to make system calls from",
				  (int)tid);
	else if (ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all) != 0)
		error = diag_errno(diag, "cannot block the signals of thread %d", (int)tid);
	if (error) {
		gate_return(remote);
		close(remote->memory);
	} else {
		__atomic_fetch_add(&remote_count, 1, __ATOMIC_ACQ_REL);
	}
	return error;
}

int64_t remote_call(struct remote *remote, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		    uint64_t f)
{
	struct user_regs_struct registers = remote->registers;
	registers_set_call(&registers, remote->gate, number, (const uint64_t[]){a, b, c, d, e, f});
	if (!registers_write(remote->pid, &registers))
		return -ESRCH;
	/* In, and out. */
	if (go_on(remote, PTRACE_SYSCALL, SYSCALL_STOP) != 0 || go_on(remote, PTRACE_SYSCALL, SYSCALL_STOP) != 0 ||
	    !registers_read(remote->pid, &registers))
		return -ESRCH;
	return registers_result(&registers);
}

/* ---- several calls at once ---- */

/* Registers by their numbers: of a call's arguments, and those that a call leaves alone. */
enum { RAX = 0, RBX = 3 };
static const uint8_t argument_registers[6] = {7, 6, 2, 10, 8, 9};
static const uint8_t kept_registers[REMOTE_KEPT_MAX] = {12, 13, 14, 15, RBX};

struct program {
	unsigned char code[REMOTE_BATCH_BYTES];
	size_t size;
};

static void put(struct program *program, const void *bytes, size_t size)
{
	assert(program->size + size <= sizeof(program->code));
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

/* Room for a call with six arguments, each added to a result, and for keeping its own; two more to end with; the way
   back. */
_Static_assert((REMOTE_BATCH_MAX + 2) * (6 * (10 + 3) + 10 + 2 + 3) + 15 + 14 + 13 <= REMOTE_BATCH_BYTES,
	       "a batch fits");

/* What the batch's end tells us by: a signal to itself. It stops whoever is traced, and is nothing to one who is
   not. */
enum { END_SIGNAL = SIGURG };

static void put_end(struct program *program, uint64_t entry)
{
	static const unsigned char clear_kept[] = {0x31, 0xdb, 0x4d, 0x31, 0xe4, 0x4d, 0x31,
						   0xed, 0x4d, 0x31, 0xf6, 0x4d, 0x31, 0xff};
	unsigned char jump[13];
	put_constant(program, RAX, SYS_getpid);
	put(program, "\x0f\x05", 2);
	put_registers(program, 0x89, RAX, argument_registers[0]);
	put_constant(program, argument_registers[1], END_SIGNAL);
	put_constant(program, RAX, SYS_kill);
	put(program, "\x0f\x05", 2);
	put(program, clear_arguments, sizeof(clear_arguments));
	put(program, clear_kept, sizeof(clear_kept));
	make_jump(jump, entry);
	put(program, jump, sizeof(jump));
}

/* To the end of a batch: by one stop, or where the signal may not come through by those of each call. */
static int batch_run(struct remote *remote, uint32_t count)
{
	if (!(proc_status_mask(remote->pid, "SigBlk") >> (END_SIGNAL - 1) & 1) &&
	    proc_status_value(remote->pid, "Seccomp") <= 0)
		return go_on(remote, PTRACE_CONT, END_SIGNAL);
	for (uint32_t i = 0; i < 2 * count; i++)
		if (go_on(remote, PTRACE_SYSCALL, SYSCALL_STOP) != 0)
			return -ESRCH;
	return 0;
}

static int64_t register_value(const struct user_regs_struct *registers, uint8_t number)
{
	assert(number < 16);
	const unsigned long long values[] = {[RBX] = registers->rbx,
					     [12] = registers->r12,
					     [13] = registers->r13,
					     [14] = registers->r14,
					     [15] = registers->r15};
	return (int64_t)values[number];
}

/* While other threads of the process run, nothing may be sent to it, and registers have to stay as they are. */
static int one_by_one(struct remote *remote, const struct remote_step *steps, uint32_t count, int64_t *results)
{
	int64_t all[REMOTE_BATCH_MAX];
	for (uint32_t i = 0; i < count; i++) {
		uint64_t value[6];
		for (int k = 0; k < 6; k++) {
			const struct remote_argument *argument = &steps[i].argument[k];
			assert(argument->plus <= i);
			value[k] = argument->value + (argument->plus ? (uint64_t)all[argument->plus - 1] : 0);
		}
		all[i] = remote_call(remote, steps[i].number, value[0], value[1], value[2], value[3], value[4],
				     value[5]);
		if (steps[i].keep)
			results[i] = all[i];
	}
	return 0;
}

int remote_batch(struct remote *remote, uint64_t at, const struct remote_step *steps, uint32_t count,
		 int64_t results[REMOTE_BATCH_MAX])
{
	struct program program = {.size = 0};
	uint8_t kept[REMOTE_BATCH_MAX];
	uint32_t kept_count = 0;
	assert(count <= REMOTE_BATCH_MAX);
	if (remote->is_running)
		return one_by_one(remote, steps, count, results);
	for (uint32_t i = 0; i < count; i++) {
		put_step(&program, &steps[i], kept);
		if (!steps[i].keep)
			continue;
		assert(kept_count < REMOTE_KEPT_MAX);
		kept[i] = kept_registers[kept_count++];
		put_registers(&program, 0x89, RAX, kept[i]);
	}
	put_end(&program, registers_pc(&remote->registers));
	struct user_regs_struct registers = remote->registers;
	registers_leave_call(&registers);
	registers_set_pc(&registers, at);
	if (!remote_write(remote->memory, at, program.code, program.size))
		return -EFAULT;
	if (!registers_write(remote->pid, &registers) || batch_run(remote, count) != 0 ||
	    !registers_read(remote->pid, &registers))
		return -ESRCH;
	if (registers_pc(&registers) <= at || registers_pc(&registers) > at + program.size)
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
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.bytes)};
	memcpy(CMSG_DATA(&control.header), &again, sizeof(again));
	int error = sendmsg(to, &message, MSG_NOSIGNAL) == 1 ? 0 : -errno;
	close(again);
	return error;
}

/* Its end of the pair, reached from here. */
static int send_over(const struct remote *remote, int socket, int fd)
{
	/* It may be another thread than the first, for which there are such descriptors only since Linux 6.9. */
	pid_t first = (pid_t)proc_status_value(remote->pid, "Tgid");
	int process = (int)syscall(SYS_pidfd_open, first, 0);
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
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char byte;
};
_Static_assert(sizeof(struct inbox) <= REMOTE_PLACE_BYTES, "it fits");

static int64_t receive(struct remote *remote, uint64_t place, int socket)
{
	struct inbox inbox = {.message = {.msg_iov = (struct iovec *)(place + offsetof(struct inbox, data)),
					  .msg_iovlen = 1,
					  .msg_control = (void *)(place + offsetof(struct inbox, control)),
					  .msg_controllen = sizeof(inbox.control)},
			      .data = {(void *)(place + offsetof(struct inbox, byte)), 1}};
	if (!remote_write(remote->memory, place, &inbox, sizeof(inbox)))
		return -EFAULT;
	int64_t got =
		remote_call(remote, SYS_recvmsg, (uint64_t)socket, place, MSG_CMSG_CLOEXEC | MSG_DONTWAIT, 0, 0, 0);
	if (got < 0)
		return got;
	const struct cmsghdr *header = (const struct cmsghdr *)inbox.control;
	int fd = -EBADF;
	if (remote_read(remote->memory, place, &inbox, sizeof(inbox)) && header->cmsg_len == CMSG_LEN(sizeof(int)) &&
	    header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
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
	gate_return(remote);
	/* The kernel begins a call again only for one that stood where a signal would have come. */
	struct user_regs_struct registers = remote->is_running ? registers_to_go_on(remote) : remote->registers;
	if (remote->is_running)
		registers_leave_call(&registers);
	registers_write(remote->pid, &registers);
	if (remote->is_running)
		ptrace(PTRACE_SETSIGMASK, remote->pid, sizeof(remote->signal_mask), &remote->signal_mask);
	for (int signal = 1; signal <= 64; signal++)
		if (remote->postponed & BIT(signal))
			kill(remote->pid, signal);
	close(remote->memory);
	__atomic_fetch_sub(&remote_count, 1, __ATOMIC_ACQ_REL);
}

void remote_await_none(uint64_t limit_ns)
{
	enum { POLL_NS = 200000 };
	uint64_t until_ns = monotonic_now_ns() + limit_ns;
	while (__atomic_load_n(&remote_count, __ATOMIC_ACQUIRE) && monotonic_now_ns() < until_ns)
		monotonic_pause(POLL_NS);
}
