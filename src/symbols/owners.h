/* SPDX-License-Identifier: MIT */
/** The namespaces and classes around the declaration of a function, for those without a mangled name that tells. */
#ifndef XHEAP_SYMBOLS_OWNERS_H
#define XHEAP_SYMBOLS_OWNERS_H

#include <elfutils/libdw.h>

#include "base/arena.h"
#include "base/map.h"

struct owner_unit;

/** Zero it to begin. */
struct owners {
	struct arena arena;
	struct map unit_of; /**< unit in memory -> place in units */
	struct owner_unit *units;
	size_t count, capacity;
};

/** The function's name with "outer::inner::" before it, NULL when it has none. Valid until owners_fini(). */
const char *owners_qualify(struct owners *owners, Dwarf_Die *function);

void owners_fini(struct owners *owners);

#endif
