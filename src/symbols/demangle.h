/* SPDX-License-Identifier: MIT */
/** Names of symbols: removal of the additions of compilers and linkers, and demangling. */
#ifndef XHEAP_SYMBOLS_DEMANGLE_H
#define XHEAP_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/** Return whether the symbol is mangled by C++, Rust or D. */
bool name_is_mangled(const char *symbol);

/** Return how many leading underscores are no part of a mangling: the fewer, the more public the name. */
size_t name_underscores(const char *symbol);

/** Return the crate that has the code of a function, whose name is mangled in Rust's newer way, and set *length: the
    crate of the implementation, or of a type's own method. NULL: the name is mangled in another way, or does not say,
    as that of a method which a trait gives to all types. */
const char *name_rust_crate(const char *mangled, size_t *length);

/** Return the name as its language writes it, owned by the arena; the plain symbol if it is not mangled or is
    damaged. */
const char *name_demangle(struct arena *arena, const char *symbol);

#endif
