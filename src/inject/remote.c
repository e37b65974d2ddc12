/* SPDX-License-Identifier: MIT */
#include "inject/remote.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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

#include "arch/call_code.h"
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
	return remote_read(memory, base, header, sizeof(*header)) && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_phentsize == sizeof(segments[0]) && header->e_phnum > 0 &&
	       header->e_phnum <= REMOTE_SEGMENT_MAX &&
	       remote_read(memory, base + header->e_phoff, segments, header->e_phnum * sizeof(segments[0]));
}

/*
 * The calling process may be killed at any moment, and then the target runs on from its present registers. So no
 * instruction is single-stepped (the flag for that would stay) and no trap is left on its way. It stops only at system
 * calls. Behind everything that it executes for the logger lie instructions that restore its registers and go to its
 * entry.
 *
 * These instructions, the gate, lie in bytes that nothing else executes: behind the code of an image in its last page,
 * or behind the kernel's own, until the recorder's memory is mapped. If an exec leaves no such bytes, the gate replaces
 * the program's first instructions. Only this process could restore them. So the kernel ends such a target if this
 * process is killed, before the target has run one instruction of its own.
 */
enum { SYSCALL_STOP = SIGTRAP | 0x80, PAGE = 4096, EXEC_OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD };

/* All calls for one purpose wait that long together for a thread that does not come back, and then for it to stop. */
#define WAIT_LIMIT_NS (10 * NS_PER_S)
#define STOP_LIMIT_NS NS_PER_S

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

/* Set the options of a process at its exec. The filters that it has inherited are for its own calls: they would refuse
   ours, or kill the process for them. The kernel suspends them for a logger with CAP_SYS_ADMIN. Without it, calls are
   made only under the filters that the logger has inherited, too. */
static bool set_options(struct remote *remote, uint64_t more)
{
	pid_t pid = remote->pid;
	remote->is_unfiltered = ptrace(PTRACE_SETOPTIONS, pid, 0, EXEC_OPTIONS | more | PTRACE_O_SUSPEND_SECCOMP) == 0;
	if (remote->is_unfiltered)
		return true;
	remote->is_unfiltered =
		proc_status_value(pid, "Seccomp") <= 0 ||
		proc_status_value(pid, "Seccomp_filters") == proc_status_value(getpid(), "Seccomp_filters");
	return ptrace(PTRACE_SETOPTIONS, pid, 0, EXEC_OPTIONS | more) == 0;
}

/* Return the registers with which a thread continues without the kernel's help. */
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

/* Write the gate: a system call, then the way back. */
static bool gate_write(const struct remote *remote, uint64_t at)
{
	unsigned char bytes[REMOTE_GATE_BYTES];
	struct machine_code gate = {bytes, 0, sizeof(bytes)};
	call_code_put_enter(&gate);
	if (remote->is_running) {
		struct user_regs_struct registers = registers_to_go_on(remote);
		call_code_put_way_back(&gate, &registers);
	} else {
		call_code_put_entry(&gate, registers_pc(&remote->registers));
	}
	return remote_write(remote->memory, at, bytes, gate.size);
}

/* Return the size of a gate. */
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

/* Return the last bytes of the vDSO's page: its sections, which debuggers read, may follow its code. */
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

/* Borrow a place for the gate until the recorder's memory is mapped. */
static int gate_borrow(struct remote *remote)
{
	static uint64_t (*const places[])(const struct remote *) = {behind_loader, behind_executable, behind_any_image,
								    behind_kernel_code, at_first_instruction};
	uint64_t at = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !at; i++)
		at = places[i](remote);
	if (!at || !remote_read(remote->memory, at, remote->borrowed, gate_bytes(remote)))
		return -ENOTSUP;
	if (at == at_first_instruction(remote) && !set_options(remote, PTRACE_O_EXITKILL))
		return -ENOTSUP;
	if (!gate_write(remote, at))
		return -ENOTSUP;
	remote->gate = remote->borrowed_at = at;
	return 0;
}

/* Restore the borrowed bytes. */
static void gate_return(struct remote *remote)
{
	if (!remote->borrowed_at)
		return;
	remote_write(remote->memory, remote->borrowed_at, remote->borrowed, gate_bytes(remote));
	if (remote->borrowed_at == at_first_instruction(remote))
		set_options(remote, 0);
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

/* Postpone a signal. As with the kernel's pending ones, SIGCONT cancels a stop, and a stop cancels SIGCONT. */
static void postpone(struct remote *remote, int signal)
{
	const uint64_t stops = BIT(SIGSTOP) | BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU);
	if (signal == SIGCONT)
		remote->postponed &= ~stops;
	if (stops & BIT(signal))
		remote->postponed &= ~BIT(SIGCONT);
	remote->postponed |= BIT(signal);
}

/* Return whether a thread is stopped by the signal that the kernel sends for a call that it does not make. */
static bool is_refusal(const struct remote *remote, int status)
{
	siginfo_t information;
	return status >> 16 == 0 && WSTOPSIG(status) == SIGSYS &&
	       ptrace(PTRACE_GETSIGINFO, remote->pid, 0, &information) == 0 && information.si_code > 0;
}

/* Wait for the thread's next stop. Ordinary calls end during the looks without a pause. Pauses are counted, and all of
   them together last no longer than *left_ns. Return as waitpid(): 0 when they have. */
static pid_t await_stop(const struct remote *remote, int *status, uint64_t *left_ns)
{
	enum { LOOKS = 20, PAUSE_FIRST_NS = 2000, PAUSE_LAST_NS = 1000000 };
	uint64_t pause_ns = PAUSE_FIRST_NS;
	pid_t got;
	for (unsigned round = 0; (got = waitpid(remote->pid, status, __WALL | WNOHANG)) == 0; round++) {
		if (round < LOOKS) {
			sched_yield();
			continue;
		}
		if (!*left_ns)
			return 0;
		uint64_t before_ns = monotonic_now_ns();
		monotonic_pause(pause_ns);
		uint64_t spent_ns = monotonic_now_ns() - before_ns;
		*left_ns -= spent_ns < *left_ns ? spent_ns : *left_ns;
		pause_ns = pause_ns < PAUSE_LAST_NS ? 2 * pause_ns : PAUSE_LAST_NS;
	}
	return got;
}

/* The thread does not come back: its process may have changed the gate, or a frozen cgroup holds it. Stop it where it
   is. */
static int give_up(struct remote *remote)
{
	int status;
	uint64_t left_ns = STOP_LIMIT_NS;
	ptrace(PTRACE_INTERRUPT, remote->pid, 0, 0);
	pid_t got = await_stop(remote, &status, &left_ns);
	remote->state = !got ? REMOTE_AWAY : got == remote->pid && WIFSTOPPED(status) ? REMOTE_LOST : REMOTE_GONE;
	errno = ETIMEDOUT;
	return -ETIMEDOUT;
}

static int silence(struct remote *remote)
{
	if (remote->state == REMOTE_ANSWERS)
		remote->state = REMOTE_GONE;
	return remote->state == REMOTE_GONE ? -ESRCH : -ETIMEDOUT;
}

/* Resume until the next stop of this kind. Return 0, -ESRCH if the process is gone, -EPERM if the kernel does not make
   the call, or -ETIMEDOUT. Signals that arrive before are sent again at the end. */
static int go_on(struct remote *remote, enum __ptrace_request how, int stop)
{
	if (remote->state != REMOTE_ANSWERS)
		return silence(remote);
	for (;;) {
		int status;
		if (ptrace(how, remote->pid, 0, 0) != 0)
			return silence(remote);
		pid_t got = await_stop(remote, &status, &remote->left_ns);
		if (!got)
			return give_up(remote);
		if (got != remote->pid || !WIFSTOPPED(status))
			return silence(remote);
		/* An interrupt that was requested before the exec stops it only now, and has no other effect. */
		if (status >> 16 == 0 && WSTOPSIG(status) == stop)
			return 0;
		if (is_refusal(remote, status))
			return -EPERM;
		if (status >> 16 == 0)
			postpone(remote, WSTOPSIG(status));
	}
}

static int64_t call_traced(struct remote *remote, long number, const uint64_t argument[6])
{
	struct user_regs_struct registers = remote->registers;
	registers_set_call(&registers, remote->gate, number, argument);
	if (!registers_write(remote->pid, &registers))
		return silence(remote);
	/* In, and out. */
	int error = go_on(remote, PTRACE_SYSCALL, SYSCALL_STOP);
	if (!error)
		error = go_on(remote, PTRACE_SYSCALL, SYSCALL_STOP);
	if (error)
		return error;
	return registers_read(remote->pid, &registers) ? registers_result(&registers) : -ESRCH;
}

/* Between a beginning and its end, of all threads. */
static uint32_t remote_count;

int remote_begin(struct remote *remote, pid_t pid, struct diag *diag)
{
	memset(remote, 0, sizeof(*remote));
	remote->pid = pid;
	remote->call = call_traced;
	remote->left_ns = WAIT_LIMIT_NS;
	remote->memory = proc_open(pid, "mem", O_RDWR);
	if (remote->memory < 0)
		return diag_errno(diag, "cannot open the memory of process %d", (int)pid);
	/* The stop is inside execve, whose end would overwrite the registers: resume to the call's exit. */
	if (!set_options(remote, 0) || go_on(remote, PTRACE_SYSCALL, SYSCALL_STOP) != 0 ||
	    !registers_read(pid, &remote->registers)) {
		int error = diag_errno(diag, "cannot read the registers of process %d", (int)pid);
		close(remote->memory);
		return error;
	}
	if (!remote->is_unfiltered) {
		close(remote->memory);
		return diag_fail(diag, EPERM,
				 "process %d has a seccomp filter that could end it for a call that xheap needs; "
				 "only root's xheap can suspend it",
				 (int)pid);
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
	/* For a blocked SIGSYS, when the kernel itself has to send it, the handler would be lost. */
	const uint64_t all = ~BIT(SIGSYS);
	*remote = (struct remote){.pid = tid, .call = call_traced, .is_running = true, .left_ns = WAIT_LIMIT_NS};
	remote->memory = proc_open(tid, "mem", O_RDWR);
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
	return remote->call(remote, number, (const uint64_t[]){a, b, c, d, e, f});
}

bool remote_can_call(struct remote *remote)
{
	return remote_call(remote, SYS_munmap, 0, 0, 0, 0, 0, 0) == -EINVAL;
}

/* ---- several calls at once ---- */

_Static_assert((REMOTE_BATCH_MAX + 1) * CALL_STEP_BYTES_MAX + CALL_END_BYTES_MAX <= REMOTE_BATCH_BYTES, "a batch fits");

/* The batch ends with a signal to itself. It stops a traced process, and has no effect on an untraced one. */
enum { END_SIGNAL = SIGURG };

/* The arguments of a step, where results of other steps are named by the place at which they are kept. */
static void put_step(struct machine_code *program, const struct remote_step *step, const uint32_t *kept)
{
	struct call_argument argument[6];
	for (int i = 0; i < 6; i++) {
		uint32_t plus = step->argument[i].plus;
		argument[i] = (struct call_argument){step->argument[i].value, plus ? kept[plus - 1] + 1 : 0};
	}
	call_code_put_step(program, step->number, argument);
}

/* Run to the end of a batch: by one stop or, if the signal may not be delivered, by the stops of each call. */
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

/* Make the calls one by one. While other threads of the process run, no signal may be sent to it, and registers must
   stay. */
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
	unsigned char bytes[REMOTE_BATCH_BYTES];
	struct machine_code program = {bytes, 0, sizeof(bytes)};
	uint32_t kept[REMOTE_BATCH_MAX];
	uint32_t kept_count = 0;
	assert(count <= REMOTE_BATCH_MAX);
	if (remote->is_running)
		return one_by_one(remote, steps, count, results);
	for (uint32_t i = 0; i < count; i++) {
		put_step(&program, &steps[i], kept);
		if (!steps[i].keep)
			continue;
		kept[i] = kept_count++;
		call_code_put_keep(&program, kept[i]);
	}
	call_code_put_end(&program, END_SIGNAL, registers_pc(&remote->registers));
	struct user_regs_struct registers = remote->registers;
	registers_leave_call(&registers);
	registers_set_pc(&registers, at);
	if (!remote_write(remote->memory, at, bytes, program.size))
		return -EFAULT;
	if (!registers_write(remote->pid, &registers) || batch_run(remote, count) != 0 ||
	    !registers_read(remote->pid, &registers))
		return -ESRCH;
	if (registers_pc(&registers) <= at || registers_pc(&registers) > at + program.size)
		return -EFAULT;
	for (uint32_t i = 0; i < count; i++)
		if (steps[i].keep)
			results[i] = call_code_kept(&registers, kept[i]);
	return 0;
}

/* ---- a descriptor ---- */

/* Send a descriptor of the same file into `to`. */
static int send_descriptor(int to, int fd)
{
	/* With an open file of its own, the target's use of the file can be distinguished from the logger's. */
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
	/* The target can name another socket, whose queue is full. */
	int error = sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
	close(again);
	return error;
}

/* Send through the target's end of the pair, which is opened from here. */
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

/* The arguments of the target's recvmsg, and room for its result. */
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

/* Let the thread, which stands, continue as it was found. */
static void put_back(struct remote *remote)
{
	gate_return(remote);
	if (!remote->is_running)
		ptrace(PTRACE_SETOPTIONS, remote->pid, 0, EXEC_OPTIONS);
	/* The kernel restarts an interrupted call only for a thread that stopped where a signal would have been
	   delivered. */
	struct user_regs_struct registers = remote->is_running ? registers_to_go_on(remote) : remote->registers;
	if (remote->is_running)
		registers_leave_call(&registers);
	registers_write(remote->pid, &registers);
	if (remote->is_running)
		ptrace(PTRACE_SETSIGMASK, remote->pid, sizeof(remote->signal_mask), &remote->signal_mask);
}

void remote_end(struct remote *remote)
{
	/* One that did not stop still needs the gate: behind it lies its way back. */
	if (remote->state != REMOTE_AWAY)
		put_back(remote);
	/* Somebody else may have the number of one that is gone. */
	for (int signal = 1; signal <= 64 && remote->state != REMOTE_GONE; signal++)
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
