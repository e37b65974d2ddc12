/* SPDX-License-Identifier: MIT */
/** The functions by which CPython takes and gives back its arenas, from which its small objects come. */
#ifndef XHEAP_HOOK_PYTHON_ARENAS_H
#define XHEAP_HOOK_PYTHON_ARENAS_H

#include <stdbool.h>
#include <stdint.h>

struct elf;

/** Find the functions that the interpreter's table names: take(context, size) and give_back(context, arena, size). They
 *  have no exported names. getter: address of PyObject_GetArenaAllocator(), or 0. runtime: address of _PyRuntime, or 0.
 *  Return false if they are not there, or take() does not map memory. */
bool python_arenas_find(const struct elf *elf, uint32_t version, uint64_t getter, uint64_t runtime, uint64_t *take,
			uint64_t *give_back);

#endif
