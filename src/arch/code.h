/* SPDX-License-Identifier: MIT */
/** The properties of machine instructions that matter for moving and following them. */
#ifndef XHEAP_ARCH_CODE_H
#define XHEAP_ARCH_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum code_kind {
	CODE_PLAIN,     /**< runs the same at any address */
	CODE_RELATIVE,  /**< has a memory operand relative to the instruction pointer */
	CODE_CONDITION, /**< jcc */
	CODE_LOOP,      /**< loop, jrcxz: a condition with a short displacement only */
	CODE_JUMP,      /**< direct jump */
	CODE_CALL,      /**< direct call */
	CODE_CALL_FAR,  /**< call through a register or memory */
	CODE_END,       /**< ret, indirect jump, trap: the next instruction is not reached from here */
	CODE_PADDING,   /**< nop; int3, too, which no program has as its first instruction */
	CODE_SYSCALL,   /**< enters the kernel: a thread may stay in it */
	CODE_STUBBORN   /**< cannot be moved */
};

/** A decoded instruction. */
struct code {
	enum code_kind kind;
	uint8_t length;
	uint8_t field;       /**< offset of the relative displacement */
	uint8_t field_bytes; /**< 1 or 4; 0: none */
	uint8_t opcode;      /**< last opcode byte */
	uint8_t prefixes;    /**< bytes before the opcode */
	uint64_t target;     /**< of a direct branch, or the address of the relative operand */
};

/** Decode the instruction at `address`. Return false if the bytes are no instruction, or are cut. */
bool code_decode(struct code *code, const uint8_t *bytes, size_t available, uint64_t address);

/** As code_decode(), but fast: set only the length, and of direct branches the kind and target. All other instructions
    are CODE_PLAIN. */
bool code_decode_branch(struct code *code, const uint8_t *bytes, size_t available, uint64_t address);

/** Write to `moved` an instruction, one byte longer, that names the address of a relative memory operand from anywhere.
    Return false if that address is not below 2 GiB, or the instruction has no such form. */
bool code_make_absolute(const struct code *code, const uint8_t *bytes, uint8_t *moved);

#endif
