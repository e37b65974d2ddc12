/* SPDX-License-Identifier: MIT */
/** Search tables for unwinding (.eh_frame_hdr), made for images that were linked without one, as static executables
    are. */
#ifndef XHEAP_INJECT_TABLES_H
#define XHEAP_INJECT_TABLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Open the file that a process has mapped from `base` on. Return the descriptor; -1: it cannot be found. */
int tables_open(pid_t pid, uint64_t base);

/** Find .eh_frame of the ELF file at fd by its section headers. Return its address in the file and set *size; 0: there
    is none. */
uint64_t tables_find(int fd, uint64_t *size);

/** Make the table. frames: .eh_frame as loaded at run-time address `at`. The table is for run-time address `table_at`.
    Return it (the caller frees it) and set its size; NULL: there is nothing to search. */
void *tables_make(const uint8_t *frames, size_t size, uint64_t at, uint64_t table_at, size_t *table_size);

/** Return an upper bound of the table's size for `size` bytes of .eh_frame. */
size_t tables_bound(size_t size);

#endif
