/* SPDX-License-Identifier: MIT */
/** The packages that images are of, whose debug symbols a user may install. */
#ifndef XHEAP_SYMBOLS_PACKAGE_H
#define XHEAP_SYMBOLS_PACKAGE_H

#include <stddef.h>

enum { PACKAGE_NAME_BYTES = 128, PACKAGE_PATHS_MAX = 8 };

/** Write for each of at most PACKAGE_PATHS_MAX files the name of its package, as Debian's systems know it; "" if it is
    not known, or too long. Paths that are not absolute are of no package. It reads the lists of all packages, some
    hundredths of a second: commands call this, the library never does. */
void symbols_packages(const char *const *paths, size_t count, char (*packages)[PACKAGE_NAME_BYTES]);

#endif
