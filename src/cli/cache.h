/* SPDX-License-Identifier: MIT */
/** Where things are kept that can be made again: $XDG_CACHE_HOME/xheap, else ~/.cache/xheap. */
#ifndef XHEAP_CLI_CACHE_H
#define XHEAP_CLI_CACHE_H

#include <stdbool.h>
#include <stddef.h>

enum { CACHE_PATH_BYTES = 4096 };

/** The path of a directory there, with a "/" behind it; it is made when it is not there. False when there can be
    none. */
bool cache_directory(char path[CACHE_PATH_BYTES], const char *name);

#endif
