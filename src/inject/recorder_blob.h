/* SPDX-License-Identifier: MIT */
/** The recorder as it is embedded in this program: its flat code, and the offsets of its hooks. */
#ifndef XHEAP_INJECT_RECORDER_BLOB_H
#define XHEAP_INJECT_RECORDER_BLOB_H

#include <stddef.h>
#include <stdint.h>

/** Return the code (static) and its size. */
const unsigned char *recorder_code(size_t *size);

/** Return the offset of a hook in the code. The hook must exist. */
uint64_t recorder_symbol(const char *name);

#endif
