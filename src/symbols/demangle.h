/* SPDX-License-Identifier: MIT */
/** Names of symbols: taking off what compilers and linkers add, and writing them as their language does. */
#ifndef XHEAP_SYMBOLS_DEMANGLE_H
#define XHEAP_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/** The length of the symbol without version ("@@GLIBC_2.2") and the marks of split or cloned parts (".cold",
    ".isra.0"). */
size_t name_plain_length(const char *symbol);

/** Whether the symbol is mangled by C++, Rust or D. */
bool name_is_mangled(const char *symbol);

/** Leading underscores that are no part of a mangling: the fewer, the more public the name. */
size_t name_underscores(const char *symbol);

/** The name as its language writes it, kept by the arena; the plain symbol when it is not mangled or cannot be read. */
const char *name_demangle(struct arena *arena, const char *symbol);

#endif
