/* SPDX-License-Identifier: MIT */
/** Debug files from servers, where the user has configured some. */
#ifndef XHEAP_SYMBOLS_DEBUGINFOD_H
#define XHEAP_SYMBOLS_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

/** Loads elfutils' client library when it is first needed. */
struct debuginfod;

/** NULL when DEBUGINFOD_URLS is not set. */
struct debuginfod *debuginfod_new(void);
void debuginfod_free(struct debuginfod *debuginfod);

/**
 * A descriptor of the debug file of this build-id, or -1. A server that does not answer is waited for once, for some
 * seconds, and then not asked again.
 */
int debuginfod_open(struct debuginfod *debuginfod, const uint8_t *build_id, size_t size);

#endif
