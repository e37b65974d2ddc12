/* SPDX-License-Identifier: MIT */
/** The package that an image is of, whose debug symbols a user may install. */
#ifndef XHEAP_SYMBOLS_PACKAGE_H
#define XHEAP_SYMBOLS_PACKAGE_H

#include <stddef.h>

/** Write the name of the package that the file is of, as Debian's systems know it, cut to `size` bytes with the NUL; ""
    when that is not known. It runs a program and waits for its end. */
void symbols_package(const char *path, char *package, size_t size);

#endif
