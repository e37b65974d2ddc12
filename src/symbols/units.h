/* SPDX-License-Identifier: MIT */
/** What debug information says of an address: the function, what was inlined into it there, files and lines. */
#ifndef XHEAP_SYMBOLS_UNITS_H
#define XHEAP_SYMBOLS_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/symbol_table.h"

enum { UNITS_FRAMES_MAX = 256 };

struct units;

/** A function at an address. Texts are in the memory of the debug information or of the units, each always at one
    place. */
struct unit_frame {
	const char *linkage; /**< the symbol's name if it is not the source's: mangled, mostly; or NULL */
	/** as the source has it, with namespaces and classes if it has no mangled name, or NULL */
	const char *name;
	const char *file;      /**< of the line that is executing in it, or NULL */
	const char *directory; /**< that the file's path begins at, or NULL */
	uint32_t line;
	bool inlined;
	uint64_t entry; /**< where the function begins; 0 when inlined or not known */
};

/** Prepare the debug information of an image whose code is where the table says; both must outlive it. */
struct units *units_new(Dwarf *dwarf, const struct table *table);
void units_free(struct units *units);

/** The frames at the address, innermost first; 0 when no unit covers it. The last may lack a name but not be
    inlined. */
size_t units_find(struct units *units, uint64_t address, struct unit_frame frames[UNITS_FRAMES_MAX]);

#endif
