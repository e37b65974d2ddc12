/* SPDX-License-Identifier: MIT */
/** A search table for unwinding (.eh_frame_hdr) for images that were linked without one, as static executables are. */
#ifndef XHEAP_INJECT_TABLES_H
#define XHEAP_INJECT_TABLES_H

#include <stddef.h>
#include <stdint.h>

/** Where .eh_frame of the ELF file at fd lies, by its section headers: its address in the file and size. 0 when there
    is none. */
uint64_t tables_find(int fd, uint64_t *size);

/**
 * Make the table: frames is .eh_frame as loaded at run-time address `at`; the table will lie at run-time address
 * `table_at`, anywhere. Returns it (free() it) with its size, or NULL when there is nothing to search.
 */
void *tables_make(const uint8_t *frames, size_t size, uint64_t at, uint64_t table_at, size_t *table_size);

/** An upper bound of the table's size for `size` bytes of .eh_frame. */
size_t tables_bound(size_t size);

#endif
