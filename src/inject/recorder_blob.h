/* SPDX-License-Identifier: MIT */
/** The recorder as it travels in this program: its flat code, and where its hooks lie in it. */
#ifndef XHEAP_INJECT_RECORDER_BLOB_H
#define XHEAP_INJECT_RECORDER_BLOB_H

#include <stddef.h>
#include <stdint.h>

const unsigned char *recorder_code(size_t *size);

/** The offset of a hook in that code. */
uint64_t recorder_symbol(const char *name);

#endif
