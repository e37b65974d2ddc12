/* SPDX-License-Identifier: MIT */
/** Paths of source files. */
#ifndef XHEAP_SYMBOLS_SOURCES_H
#define XHEAP_SYMBOLS_SOURCES_H

#include "base/arena.h"

/** Return `file` as seen from the directory in which it was compiled (or NULL), without "." and "..": one spelling for
    each file. Owned by the arena. */
const char *source_path(struct arena *arena, const char *directory, const char *file);

#endif
