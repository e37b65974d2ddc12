/* SPDX-License-Identifier: MIT */
#include "arch/call_code.h"

#include <assert.h>
#include <sys/syscall.h>

/* Registers by their numbers: of a call's arguments, and those that a call leaves alone. */
enum { RAX = 0, RBX = 3, RSP = 4, R11 = 11 };
static const uint8_t argument_registers[6] = {7, 6, 2, 10, 8, 9};
static const uint8_t kept_registers[CALL_KEPT_MAX] = {12, 13, 14, 15, RBX};

/* xor of each argument's register with itself: after an exec all registers are 0 but the stack pointer. */
static const unsigned char clear_arguments[15] = {0x31, 0xff, 0x31, 0xf6, 0x31, 0xd2, 0x4d, 0x31,
						  0xd2, 0x4d, 0x31, 0xc0, 0x4d, 0x31, 0xc9};
static const unsigned char clear_kept[14] = {0x31, 0xdb, 0x4d, 0x31, 0xe4, 0x4d, 0x31,
					     0xed, 0x4d, 0x31, 0xf6, 0x4d, 0x31, 0xff};

enum { CONSTANT_BYTES = 10, ENTER_BYTES = 2, COPY_BYTES = 3, JUMP_BYTES = CONSTANT_BYTES + 3 };
_Static_assert(6 * (CONSTANT_BYTES + COPY_BYTES) + CONSTANT_BYTES + ENTER_BYTES + COPY_BYTES <= CALL_STEP_BYTES_MAX,
	       "a step fits");
_Static_assert(3 * CONSTANT_BYTES + 2 * ENTER_BYTES + COPY_BYTES + sizeof(clear_arguments) + sizeof(clear_kept) +
			       JUMP_BYTES <=
		       CALL_END_BYTES_MAX,
	       "an end fits");

/* movabs $value, %to */
static void put_constant(struct machine_code *code, uint8_t to, uint64_t value)
{
	machine_code_put(code, (uint8_t[]){0x48 | to >> 3, 0xb8 | (to & 7)}, 2);
	machine_code_put(code, &value, sizeof(value));
}

/* mov (0x89) or add (0x01) %from, %to */
static void put_registers(struct machine_code *code, uint8_t opcode, uint8_t from, uint8_t to)
{
	machine_code_put(code,
			 (uint8_t[]){0x48 | (from >> 3) << 2 | to >> 3, opcode, 0xc0 | (from & 7) << 3 | (to & 7)}, 3);
}

/* movabs $entry, %r11; jmp *%r11 */
static void put_jump(struct machine_code *code, uint64_t entry)
{
	put_constant(code, R11, entry);
	machine_code_put(code, "\x41\xff\xe3", 3);
}

void call_code_put_enter(struct machine_code *code)
{
	machine_code_put(code, "\x0f\x05", 2);
}

/* push $flags; popfq, below the red zone; all registers; jmp *(%rip) */
void call_code_put_way_back(struct machine_code *code, const struct user_regs_struct *registers)
{
	enum { BELOW = 512 };
	const uint64_t values[] = {registers->rax, registers->rcx, registers->rdx, registers->rbx,
				   registers->rsp, registers->rbp, registers->rsi, registers->rdi,
				   registers->r8,  registers->r9,  registers->r10, registers->r11,
				   registers->r12, registers->r13, registers->r14, registers->r15};
	uint32_t flags = (uint32_t)registers->eflags;
	put_constant(code, RSP, (registers->rsp - BELOW) & ~15ull);
	machine_code_put(code, "\x68", 1);
	machine_code_put(code, &flags, sizeof(flags));
	machine_code_put(code, "\x9d", 1);
	for (uint8_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		put_constant(code, i, values[i]);
	machine_code_put(code, "\xff\x25\0\0\0", 6);
	machine_code_put(code, &registers->rip, sizeof(registers->rip));
}

void call_code_put_entry(struct machine_code *code, uint64_t entry)
{
	machine_code_put(code, clear_arguments, sizeof(clear_arguments));
	put_jump(code, entry);
}

void call_code_put_step(struct machine_code *code, long number, const struct call_argument argument[6])
{
	for (int i = 0; i < 6; i++) {
		put_constant(code, argument_registers[i], argument[i].value);
		assert(argument[i].plus <= CALL_KEPT_MAX);
		if (argument[i].plus)
			put_registers(code, 0x01, kept_registers[argument[i].plus - 1], argument_registers[i]);
	}
	put_constant(code, RAX, (uint64_t)number);
	call_code_put_enter(code);
}

void call_code_put_keep(struct machine_code *code, uint32_t kept)
{
	assert(kept < CALL_KEPT_MAX);
	put_registers(code, 0x89, RAX, kept_registers[kept]);
}

void call_code_put_end(struct machine_code *code, int signal, uint64_t entry)
{
	put_constant(code, RAX, SYS_getpid);
	call_code_put_enter(code);
	put_registers(code, 0x89, RAX, argument_registers[0]);
	put_constant(code, argument_registers[1], (uint64_t)signal);
	put_constant(code, RAX, SYS_kill);
	call_code_put_enter(code);
	machine_code_put(code, clear_arguments, sizeof(clear_arguments));
	machine_code_put(code, clear_kept, sizeof(clear_kept));
	put_jump(code, entry);
}

int64_t call_code_kept(const struct user_regs_struct *registers, uint32_t kept)
{
	const unsigned long long values[CALL_KEPT_MAX] = {registers->r12, registers->r13, registers->r14,
							  registers->r15, registers->rbx};
	assert(kept < CALL_KEPT_MAX);
	return (int64_t)values[kept];
}
