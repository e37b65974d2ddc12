/* SPDX-License-Identifier: MIT */
/** What a user does to get the names that a report lacks. */
#ifndef XHEAP_QUERY_MISSING_SYMBOLS_H
#define XHEAP_QUERY_MISSING_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "query/frame_names.h"

/** Return one line without its end: what to install for the images of the stacks named so far, or the command to run;
    NULL: all have symbols. The caller frees it. asks_packages: name packages; this runs a program
    (symbols/package.h). */
char *missing_symbols_advice(struct heap_names *names, bool asks_packages);

/** Write the package of an image, whose debug symbols name its functions, "" if it is not known or not asked for:
    this searches the lists of packages (symbols/package.h). */
void missing_symbols_package(const struct heap_names *names, const char *image, char *package, size_t size);

#endif
