/* SPDX-License-Identifier: MIT */
/** Which pointer the thread that died first used, and where it had loaded it from. */
#ifndef XHEAP_COREFILE_CORE_LOAD_H
#define XHEAP_COREFILE_CORE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

struct corefile;

/** A pointer in a register. */
struct core_load {
	uint64_t value;
	uint64_t from; /**< address of the word that it was loaded from; the core has the value there */
};

/** Find the pointer by the code: the base register of the instruction that failed, or that called what is no code, and
    the instruction before it that has loaded this register. Return false if the code does not tell. */
bool core_load_find(const struct corefile *core, struct core_load *load);

#endif
