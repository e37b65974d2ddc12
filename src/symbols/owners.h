/* SPDX-License-Identifier: MIT */
/** The namespaces and classes around a function's declaration, for functions without a mangled name that has them. */
#ifndef XHEAP_SYMBOLS_OWNERS_H
#define XHEAP_SYMBOLS_OWNERS_H

#include <elfutils/libdw.h>

#include "base/arena.h"
#include "base/map.h"

/** The declarations of one unit. */
struct owner_unit;

/** A cache of units. Zero it to begin. */
struct owners {
	struct arena arena;
	struct map unit_of; /**< unit in memory -> index in units */
	struct owner_unit *units;
	size_t count, capacity;
};

/** Return the function's name with "outer::inner::" before it, NULL if it has none. Valid until owners_fini(). */
const char *owners_qualify(struct owners *owners, Dwarf_Die *function);

/** Free the cache. */
void owners_fini(struct owners *owners);

#endif
