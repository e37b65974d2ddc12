/* SPDX-License-Identifier: MIT */
/** x86-64. Only arch/registers.h includes it. */
#include <linux/audit.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

/** Bytes of the instruction that enters the kernel, and its first two, as ptrace reads them. */
enum { CPU_SYSCALL_BYTES = 2, CPU_SYSCALL_CODE = 0x050f };

/** The word by which seccomp's filters know this processor's system calls. */
#define CPU_AUDIT_ARCH AUDIT_ARCH_X86_64

/** A system call that x86-64 alone has, of those that wait and are not begun again after a stop; 0: none. */
enum { CPU_SYS_EPOLL_WAIT = 232 };

/** Read and write the registers of a stopped thread; false with errno. */
static inline bool registers_read(pid_t tid, struct user_regs_struct *registers)
{
	return ptrace(PTRACE_GETREGS, tid, 0, registers) == 0;
}

static inline bool registers_write(pid_t tid, const struct user_regs_struct *registers)
{
	return ptrace(PTRACE_SETREGS, tid, 0, registers) == 0;
}

static inline uint64_t registers_pc(const struct user_regs_struct *registers)
{
	return registers->rip;
}

static inline void registers_set_pc(struct user_regs_struct *registers, uint64_t pc)
{
	registers->rip = pc;
}

static inline uint64_t registers_sp(const struct user_regs_struct *registers)
{
	return registers->rsp;
}

static inline uint64_t registers_bp(const struct user_regs_struct *registers)
{
	return registers->rbp;
}

/** Return cpu_thread_pointer() of the thread. */
static inline uint64_t registers_thread_pointer(const struct user_regs_struct *registers)
{
	return registers->fs_base;
}

/** The number of the system call that the thread is in, negative outside of one; and its result so far. */
static inline int64_t registers_call(const struct user_regs_struct *registers)
{
	return (int64_t)registers->orig_rax;
}

static inline int64_t registers_result(const struct user_regs_struct *registers)
{
	return (int64_t)registers->rax;
}

/** Keep the kernel from making the call again by itself when the thread continues. */
static inline void registers_leave_call(struct user_regs_struct *registers)
{
	registers->orig_rax = (unsigned long long)-1;
}

static inline void registers_set_result(struct user_regs_struct *registers, int64_t result)
{
	registers->rax = (unsigned long long)result;
}

/** Make the thread, which is in the call, begin again with this one. */
static inline void registers_repeat_call(struct user_regs_struct *registers, int64_t number)
{
	registers->rax = (unsigned long long)number;
	registers->rip -= CPU_SYSCALL_BYTES;
}

/** Have the thread make a call by the instruction at `pc`. */
static inline void registers_set_call(struct user_regs_struct *registers, uint64_t pc, int64_t number,
				      const uint64_t arguments[6])
{
	registers_leave_call(registers);
	registers->rax = (unsigned long long)number;
	registers->rdi = arguments[0];
	registers->rsi = arguments[1];
	registers->rdx = arguments[2];
	registers->r10 = arguments[3];
	registers->r8 = arguments[4];
	registers->r9 = arguments[5];
	registers->rip = pc;
}

/** Whether the thread runs code of this program's kind: a 64-bit program may be in 32-bit code, where instructions of
    ours mean something else. */
static inline bool registers_are_native(const struct user_regs_struct *registers)
{
	uint64_t own;
	__asm__("mov %%cs, %0" : "=r"(own));
	return registers->cs == own;
}
