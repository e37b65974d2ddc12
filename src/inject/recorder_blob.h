/* SPDX-License-Identifier: MIT */
/** The recorder as it travels in this program: its flat code, and where its hooks lie in the code. The build finds both
    in the recorder's ELF file (scripts/recorder-symbols), so no ELF is read here. */
#ifndef XHEAP_INJECT_RECORDER_BLOB_H
#define XHEAP_INJECT_RECORDER_BLOB_H

#include <stddef.h>
#include <stdint.h>

/** Return the code, and set *size to its bytes. It may be copied to any address. */
const unsigned char *recorder_code(size_t *size);

/** Return the offset in the code of a hook, which must be there: hook_* or sampled_*. */
uint64_t recorder_symbol(const char *name);

#endif
