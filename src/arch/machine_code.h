/* SPDX-License-Identifier: MIT */
/** Instructions that are written into memory, one after the other. */
#ifndef XHEAP_ARCH_MACHINE_CODE_H
#define XHEAP_ARCH_MACHINE_CODE_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

/** `size` bytes of `room` are written. Both arrays and counts are the caller's. */
struct machine_code {
	unsigned char *bytes;
	size_t size, room;
};

/** Append `size` bytes. The caller has made enough room. */
static inline void machine_code_put(struct machine_code *code, const void *bytes, size_t size)
{
	assert(code->size + size <= code->room);
	memcpy(code->bytes + code->size, bytes, size);
	code->size += size;
}

#endif
