/* SPDX-License-Identifier: MIT */
/** Instructions with which a stopped process makes system calls for its tracer, and continues where it was. */
#ifndef XHEAP_ARCH_CALL_CODE_H
#define XHEAP_ARCH_CALL_CODE_H

#include <stdint.h>
#include <sys/user.h>

#include "arch/machine_code.h"

/** Results that a batch can keep in registers, which no system call changes. */
enum { CALL_KEPT_MAX = 5 };

/** Most bytes of call_code_put_step() with call_code_put_keep(), and of call_code_put_end(). */
enum { CALL_STEP_BYTES_MAX = 93, CALL_END_BYTES_MAX = 110 };

/** One argument of a call: `value`, plus the kept result number `plus` - 1 if `plus` is not 0. */
struct call_argument {
	uint64_t value;
	uint32_t plus;
};

/** Append the instruction that enters the kernel. */
void call_code_put_enter(struct machine_code *code);

/** Append code that sets all registers and continues at their program counter. It uses memory 512 bytes below their
 *  stack pointer, beyond the red zone. */
void call_code_put_way_back(struct machine_code *code, const struct user_regs_struct *registers);

/** Append code that makes the registers of call_code_put_enter()'s arguments 0, as they are after an exec, and goes to
 *  `entry`. */
void call_code_put_entry(struct machine_code *code, uint64_t entry);

/** Append a system call. */
void call_code_put_step(struct machine_code *code, long number, const struct call_argument argument[6]);

/** Append code that keeps the last call's result as number `kept`, below CALL_KEPT_MAX. */
void call_code_put_keep(struct machine_code *code, uint32_t kept);

/** Append the end of a batch: the process sends itself `signal`, makes all registers 0 that the batch has used, and
 *  goes to `entry`. */
void call_code_put_end(struct machine_code *code, int signal, uint64_t entry);

/** Return the kept result number `kept` from a process that has run its batch. */
int64_t call_code_kept(const struct user_regs_struct *registers, uint32_t kept);

#endif
