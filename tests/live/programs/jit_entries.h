/* SPDX-License-Identifier: MIT */
/** The list of code objects that a runtime keeps for gdb. */
#include <stddef.h>
#include <stdint.h>

/** Add an object whose code at [start, start + size) is a function of this name. */
void entry_add(uint64_t start, uint64_t size, const char *name);

/** Take the newest one out, and free it. */
void entry_remove(void);

/** Have the list end in: "circle", its beginning; "many", a million entries; "wild", an address of nothing; "damaged",
    objects that are none. */
void entries_end(const char *how);
