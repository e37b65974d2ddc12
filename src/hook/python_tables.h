/* SPDX-License-Identifier: MIT */
/** The functions from which CPython takes its objects, and the tables that name them. */
#ifndef XHEAP_HOOK_PYTHON_TABLES_H
#define XHEAP_HOOK_PYTHON_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/hook.h"

struct elf;

/** Find the tables of two domains, objects and memory. callers: addresses of the exported functions that call what they
 *  name, PyObject_Malloc() and its like. runtime: address of _PyRuntime. Addresses are 0 if they are not known. Return
 *  false if the tables are those of a debug build, or the image's code has no spare bytes where it needs some. */
bool python_tables_find(const struct elf *elf, uint32_t version,
			const uint64_t callers[HOOK_PYTHON_TABLES][HOOK_PYTHON_FUNCTIONS], uint64_t runtime,
			struct hook_python_objects *objects);

#endif
