/* SPDX-License-Identifier: MIT */
/** Bytes of patches in a process's memory: written, and restored. No thread is at them. */
#ifndef XHEAP_INJECT_JUMPS_H
#define XHEAP_INJECT_JUMPS_H

#include "inject/inject.h"

/** Replace the old bytes by the new ones. An image that is gone, or was patched again by others, is left alone; that is
    a success, too. */
bool bytes_replace(int memory, uint64_t address, const void *old, const void *new, uint32_t size);

/** Write the jumps, all or none but for words. Return false if the present bytes are unexpected or cannot be
    written. */
bool jumps_write(int memory, const struct inject_jump *jumps, uint32_t count);

/** Restore what was there before the jumps; without for_unwinders, leave those that unwinders need. Return false if
    bytes cannot be written. */
bool jumps_undo(int memory, const struct inject_jump *jumps, uint32_t count, bool for_unwinders);

#endif
