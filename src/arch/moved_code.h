/* SPDX-License-Identifier: MIT */
/** Instructions that run at another address than the one they were made for. */
#ifndef XHEAP_ARCH_MOVED_CODE_H
#define XHEAP_ARCH_MOVED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/code.h"

/** The bytes of moved instructions, written one after the other. */
struct moved_code {
	uint64_t destination; /**< address at which `code` runs */
	uint8_t *code;        /**< the caller's; moved_put() says how much room it needs */
	unsigned size;        /**< bytes written */
	bool is_out_of_reach; /**< set when an instruction names an address to which its form does not reach */
};

/** Append the instruction `code`, which stands in `bytes`, in a form that does the same at its new address. Writes at
 *  most CPU_MOVED_BYTES_MAX bytes. */
void moved_put(struct moved_code *moved, const struct code *code, const uint8_t *bytes);

/** Append a jump to target, near or far: at most CPU_FAR_JUMP_BYTES. */
void moved_put_jump(struct moved_code *moved, uint64_t target);

#endif
