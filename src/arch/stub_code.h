/* SPDX-License-Identifier: MIT */
/** The instructions of a stub, which lead from a patched entry to its hook. Each function appends to `output`; the
    moved instructions of the entry come behind. */
#ifndef XHEAP_ARCH_STUB_CODE_H
#define XHEAP_ARCH_STUB_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/machine_code.h"

enum { STUB_MARK_ARGUMENTS = 3 };

/** A mark that a call leaves: `bits` are set in the word at `address` if the function's first `count` arguments have
    these values. */
struct stub_mark {
	uint32_t argument[STUB_MARK_ARGUMENTS];
	uint32_t count, bits;
	uint64_t address;
};

/** A place where a program makes a request to Valgrind: rax points to its number. */
struct stub_request {
	uint32_t first, last; /**< numbers that lead to the hook; others pass by */
	uint64_t pc;          /**< address behind the place */
	uint64_t contexts;    /**< address that the hook gets */
	uint64_t hook;
};

/** Where main's beginning is noted: at `address` lies main's own address, and so far from it (below 128) two words. */
struct stub_start {
	uint64_t address;
	uint8_t has_begun, is_coming;
};

/** Bytes below the place's stack pointer at which stub_code_put_request() keeps the two words that it borrows. */
enum { STUB_REQUEST_SAVED_BYTES = 0xe0 };

/** Call a hook in place of the function: it gets the function's arguments, and `context` behind them as the fifth one;
 *  as the sixth one if moves_fifth, with the function's own fifth argument moved there. */
void stub_code_put_hook(struct machine_code *output, uint64_t context, uint64_t hook, bool moves_fifth);

/** Call a hook from a place within a function, where every register and all memory below the stack pointer belong to
 *  the function. Only the flags are free: the instructions that make up a request change them. The hook gets a frame as
 *  if the place had called it: the place's rbp and rip in the two words below the stack pointer. */
void stub_code_put_request(struct machine_code *output, const struct stub_request *request);

/** Leave the mark if the arguments are those of `mark`, and go on. */
void stub_code_put_mark(struct machine_code *output, const struct stub_mark *mark);

/** Give __libc_start_main(main, ...) the address of code in place of main's. That code, which lies here, notes that
 *  main begins, and jumps to main. `at`: the address of output's first byte. */
void stub_code_put_start(struct machine_code *output, uint64_t at, const struct stub_start *start);

#endif
