/* SPDX-License-Identifier: MIT */
/** The names that each processor's registers_code.h has; arch/x86_64/registers_code.h has the comments. Only
    arch/registers.h includes this file. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum { CPU_SYSCALL_BYTES = 1, CPU_SYSCALL_CODE = 0 };
#define CPU_AUDIT_ARCH 0u
enum { CPU_SYS_EPOLL_WAIT = 0 };
bool registers_read(pid_t tid, struct user_regs_struct *registers);
bool registers_write(pid_t tid, const struct user_regs_struct *registers);
uint64_t registers_pc(const struct user_regs_struct *registers);
void registers_set_pc(struct user_regs_struct *registers, uint64_t pc);
uint64_t registers_sp(const struct user_regs_struct *registers);
uint64_t registers_bp(const struct user_regs_struct *registers);
uint64_t registers_thread_pointer(const struct user_regs_struct *registers);
int64_t registers_call(const struct user_regs_struct *registers);
int64_t registers_result(const struct user_regs_struct *registers);
void registers_set_result(struct user_regs_struct *registers, int64_t result);
void registers_leave_call(struct user_regs_struct *registers);
void registers_repeat_call(struct user_regs_struct *registers, int64_t number);
void registers_set_call(struct user_regs_struct *registers, uint64_t pc, int64_t number, const uint64_t arguments[6]);
bool registers_are_native(const struct user_regs_struct *registers);
