/* SPDX-License-Identifier: MIT */
/** What instructions do, as far as moving them and following them needs to know. */
#ifndef XHEAP_ARCH_CODE_H
#define XHEAP_ARCH_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum code_kind {
	CODE_PLAIN,     /**< runs anywhere alike */
	CODE_RELATIVE,  /**< has a memory operand relative to the instruction pointer */
	CODE_CONDITION, /**< jcc */
	CODE_LOOP,      /**< loop, jrcxz: a condition with a short displacement only */
	CODE_JUMP,      /**< direct jump */
	CODE_CALL,      /**< direct call */
	CODE_CALL_FAR,  /**< call through a register or memory */
	CODE_END,       /**< ret, indirect jump, trap: what follows is not reached from here */
	CODE_PADDING,   /**< nop; also int3, which as a first instruction is none of a program's */
	CODE_SYSCALL,   /**< enters the kernel: a thread may stay in it */
	CODE_STUBBORN   /**< cannot be moved */
};

struct code {
	enum code_kind kind;
	uint8_t length;
	uint8_t field;       /**< place of the relative displacement */
	uint8_t field_bytes; /**< 1 or 4; 0: none */
	uint8_t opcode;      /**< last opcode byte */
	uint8_t prefixes;    /**< bytes before the opcode */
	/** CODE_CALL_FAR, or a CODE_END that jumps: its operand is relative when field_bytes is not 0 */
	bool is_indirect;
	uint64_t target; /**< of a direct branch, or the address of the relative operand */
};

/** Decode the instruction that stands at address. False when the bytes are none, or cut. */
bool code_decode(struct code *code, const uint8_t *bytes, size_t available, uint64_t address);

/** As code_decode, but fast: only length and kind of direct branches and their targets are told; all others are
    plain. */
bool code_decode_branch(struct code *code, const uint8_t *bytes, size_t available, uint64_t address);

/** Write to moved, one byte longer, an instruction whose memory operand is relative to the instruction pointer, so that
 *  it names the same address from anywhere. False: the address is not below 2 GiB, or the instruction has no such
 *  form. */
bool code_make_absolute(const struct code *code, const uint8_t *bytes, uint8_t *moved);

#endif
