/* SPDX-License-Identifier: MIT */
/** Debug information by address: the function, the functions inlined into it, files and lines. */
#ifndef XHEAP_SYMBOLS_UNITS_H
#define XHEAP_SYMBOLS_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/symbol_table.h"

enum { UNITS_FRAMES_MAX = 256 };

/** The debug information of one image. */
struct units;

/** A function at an address. Texts belong to the debug information or to the units; equal ones from one place are one
    pointer. */
struct unit_frame {
	const char *linkage; /**< the symbol's name if it differs from the source's: mangled, mostly; or NULL */
	/** the source's name, with namespaces and classes if there is no mangled name; or NULL */
	const char *name;
	const char *file;      /**< of the executing line, or NULL */
	const char *directory; /**< the directory that the file's path is relative to, or NULL */
	uint32_t line;
	bool inlined;
	uint64_t entry; /**< address of the function; 0: inlined or unknown */
};

/** Prepare the debug information of an image whose code is at the table's addresses. Both must outlive it. */
struct units *units_new(Dwarf *dwarf, const struct table *table);
/** Free it; NULL is allowed. */
void units_free(struct units *units);

/** Return whether functions are in files of their own (.dwo), whether these were found or not. */
bool units_are_split(const struct units *units);

/** Return the frames at the address, innermost first; 0: no unit covers it. The last one is not inlined and may lack a
    name. */
size_t units_find(struct units *units, uint64_t address, struct unit_frame frames[UNITS_FRAMES_MAX]);

#endif
