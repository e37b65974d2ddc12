/* SPDX-License-Identifier: MIT */
/** Debug files from servers that the user has configured. */
#ifndef XHEAP_SYMBOLS_DEBUGINFOD_H
#define XHEAP_SYMBOLS_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

/** A client. It loads elfutils' client library when it is first needed. */
struct debuginfod;

/** Make a client; NULL unless DEBUGINFOD_URLS is set. */
struct debuginfod *debuginfod_new(void);
/** Free it; NULL is allowed. */
void debuginfod_free(struct debuginfod *debuginfod);

/** Return a descriptor of the debug file with this build-id, which the caller closes, or -1. A server that does not
    answer is waited for once, for some seconds, and not asked again. */
int debuginfod_open(struct debuginfod *debuginfod, const uint8_t *build_id, size_t size);

#endif
