/* SPDX-License-Identifier: MIT */
/** Directories of the user. The cache: files that xheap can make again, below $XDG_CACHE_HOME/xheap, else
    ~/.cache/xheap. */
#ifndef XHEAP_BASE_CACHE_H
#define XHEAP_BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

enum { CACHE_PATH_BYTES = 4096 };

/** Set `path` to the directory `name` of the cache, with a "/" behind it. `makes`: make the directory if it is missing.
 *  A directory that belongs to another user, or that other users may write to, is refused. Return 0, or a negative
 *  errno with the reason in `diag`. */
int cache_directory(char path[CACHE_PATH_BYTES], const char *name, bool makes, struct diag *diag);

/** As cache_directory(), for files that xheap cannot make again: $XDG_STATE_HOME/xheap/, else ~/.local/state/xheap/. */
int state_directory(char path[CACHE_PATH_BYTES], bool makes, struct diag *diag);

#endif
