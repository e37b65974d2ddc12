/* SPDX-License-Identifier: MIT */
/**
 * From an address of an image file to the names of the code at it: functions, inlined ones included, files and lines.
 *
 * Sources are read in this order. First the debug information and symbols of the file itself, if its build-id is the
 * recorded one; if it is not there, of the file that a process in a container sees. Then a separate debug file by
 * build-id or debuglink: below each directory of the colon-separated XHEAP_DEBUG_PATH, below /usr/lib/debug, then from
 * debuginfod if DEBUGINFOD_URLS is set. Last, the mini debug information in .gnu_debugdata.
 *
 * An uncertain name is left out. Several threads may use a struct symbols; one at a time searches.
 */
#ifndef XHEAP_SYMBOLS_SYMBOLS_H
#define XHEAP_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/** Opened images, and all results so far. */
struct symbols;

/** Make an empty one. Without memory the work is given up (base/memory.h). */
struct symbols *symbols_new(void);
/** Free it with all results; NULL is allowed. */
void symbols_free(struct symbols *symbols);

/** Return whether this file is open as a source for an image. */
bool symbols_read_file(struct symbols *symbols, const struct stat *status);

/** Open no more files: images that were not opened before have no names from now on. */
void symbols_leave_files(struct symbols *symbols);

/** Read the symbols of separate debug files, but not their debug information: functions have their names, and inlined
 *  functions of such images have no frame. Not after the first search. */
void symbols_leave_separate(struct symbols *symbols);

/** Look for an image that is not at its path at that path below the root directory of this process, too, as of one in a
 *  container, while it runs. Of some processes; further ones are left out. Not after the first search. */
void symbols_add_process(struct symbols *symbols, pid_t pid);

/** One function at an address. The texts belong to struct symbols. */
struct symbol_frame {
	const char *function; /**< demangled; NULL: unknown */
	const char *mangled;  /**< as the file has it; NULL: unknown */
	const char *file;     /**< of the source; NULL: unknown */
	uint32_t line;        /**< 0: unknown */
	bool inlined;
};

/**
 * Set *frames to the functions at `offset` of an image file, innermost inlined first, the real function last. `offset`
 * is a link-time address; with is_return_address, offset - 1 is searched. Return their number (>= 1; `function` NULL:
 * unknown). Valid until symbols_free().
 *
 * Parts of a function that the compiler split off (.cold, .part.0, ...) have the function's own name.
 */
size_t symbols_resolve(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
		       uint64_t offset, bool is_return_address, const struct symbol_frame **frames);

/** Set [*low, *high) to the function of the image file at this return address, which needs no symbol. Return false if
    it is not known: the file or its unwind table is missing. */
bool symbols_function_range(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			    uint64_t offset, uint64_t *low, uint64_t *high);

/** Set *address to the link-time address of the function that the image file exports under this name, as the file has
    it. Return false if it is not known: the file is missing, or no function or several have the name. */
bool symbols_function_address(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *name, uint64_t *address);

/** Return the time spent in searches so far, in ns, opening files included. */
uint64_t symbols_spent_ns(struct symbols *symbols);

/** Return whether the image has debug information or a full symbol table; exported names alone do not count. */
bool symbols_image_has_symbols(struct symbols *symbols, const char *path, const uint8_t *build_id,
			       size_t build_id_size);

/** Return whether all files that the image's names are from belong to this user or to root. */
bool symbols_image_is_trusted(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size);

/** Return whether a file with this build-id is at the path now, and store its status. */
bool symbols_file_is_there(const char *path, const uint8_t *build_id, size_t build_id_size, struct stat *status);

#endif
