/* SPDX-License-Identifier: MIT */
/** Jumps that are written over instructions, and instructions that are known by their bytes. */
#ifndef XHEAP_ARCH_PATCH_BYTES_H
#define XHEAP_ARCH_PATCH_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/cpu.h"

/** Bytes that patch_is_behind_call() and patch_is_signal_return() read, and those of the empty function that
 *  xheap/heap.h makes for an annotation. */
enum { PATCH_CALL_BYTES_MAX = 7, PATCH_SIGNAL_RETURN_BYTES = 9, PATCH_ANNOTATION_BYTES = 6 };

/** What patch_put_marked_jump() writes: its size, and the first argument that a function gets from it. */
enum { PATCH_MARKED_JUMP_BYTES = 5 + CPU_JUMP_BYTES, PATCH_MARK = 1 };

/** Write to bytes, which lie at `at`, a jump to `to`: CPU_JUMP_BYTES. `to` has to be within 2 GiB. */
void patch_put_jump(uint8_t *bytes, uint64_t at, uint64_t to);

/** Write to bytes, which lie at `at`, a jump to a function within 2 GiB that makes PATCH_MARK its first argument. */
void patch_put_marked_jump(uint8_t *bytes, uint64_t at, uint64_t to);

/** Return whether bytes, which lie at `at`, begin with patch_put_jump()'s. *to is set to its destination. */
bool patch_get_jump(const uint8_t *bytes, uint64_t at, uint64_t *to);

/** Write to bytes a jump to any address: CPU_FAR_JUMP_BYTES. */
void patch_put_far_jump(uint8_t *bytes, uint64_t to);

/** Return whether an instruction that ends behind these bytes is a call. */
bool patch_is_behind_call(const uint8_t bytes[PATCH_CALL_BYTES_MAX]);

/** Return whether a signal handler returns to these bytes: they call the kernel's rt_sigreturn. */
bool patch_is_signal_return(const uint8_t bytes[PATCH_SIGNAL_RETURN_BYTES]);

/** Return whether these are the bytes of a function of xheap/heap.h. */
bool patch_is_annotation(const uint8_t bytes[PATCH_ANNOTATION_BYTES]);

#endif
