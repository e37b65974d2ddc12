/* SPDX-License-Identifier: MIT */
/** Paths of source files. */
#ifndef XHEAP_SYMBOLS_SOURCES_H
#define XHEAP_SYMBOLS_SOURCES_H

#include "base/arena.h"

/** `file` as seen from the directory it was compiled in (or NULL), without "." and "..": one spelling for one file. */
const char *source_path(struct arena *arena, const char *directory, const char *file);

#endif
