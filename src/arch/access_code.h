/* SPDX-License-Identifier: MIT */
/** What an instruction does with registers and memory: which address it uses, and what it loads. */
#ifndef XHEAP_ARCH_ACCESS_CODE_H
#define XHEAP_ARCH_ACCESS_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Registers are numbers as instructions have them: rax 0, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 8 to r15 15. */
enum { ACCESS_NO_REGISTER = -1 };

/** A decoded instruction. */
struct access_code {
	uint8_t length;
	int8_t base, index;   /**< registers of its memory operand; ACCESS_NO_REGISTER */
	int8_t loaded;        /**< the register that gets the 8 bytes at that address; ACCESS_NO_REGISTER: none */
	int8_t called;        /**< the register that it calls or jumps through; ACCESS_NO_REGISTER: none */
	uint8_t scale;        /**< of the index */
	bool is_branch;       /**< what comes before and behind it need not run one after the other */
	int64_t displacement; /**< of the memory operand */
	uint16_t written;     /**< bits of the registers that it writes to, wholly or in part */
};

/** Decode an instruction. Return false if the bytes are none, or are cut. */
bool access_code_decode(struct access_code *code, const uint8_t *bytes, size_t available);

#endif
