/* SPDX-License-Identifier: MIT */
/**
 * From an address of an image file to the names of the code there: functions, inlined ones too, files and lines.
 *
 * What is looked at, in this order: debug information and symbols of the file itself (only if its build-id is the
 * recorded one), a separate debug file (by build-id or debuglink, below each directory of the colon-separated
 * XHEAP_DEBUG_PATH, then below /usr/lib/debug; from debuginfod where DEBUGINFOD_URLS is set), the mini debug
 * information in .gnu_debugdata. Nothing is said rather than something wrong. One thread at a time may use a struct
 * symbols.
 */
#ifndef XHEAP_SYMBOLS_SYMBOLS_H
#define XHEAP_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/** Opened images and everything that was looked up in them. */
struct symbols;

struct symbols *symbols_new(void);
void symbols_free(struct symbols *symbols);

/** Whether this file is open and tells about an image. */
bool symbols_read_file(const struct symbols *symbols, const struct stat *status);

/** Open no file from now on: nothing is found of images that were not asked for before. */
void symbols_leave_files(struct symbols *symbols);

struct symbol_frame {
	const char *function; /**< demangled; NULL: unknown */
	const char *mangled;  /**< as the file has it; NULL: unknown */
	const char *file;     /**< of the source; NULL: unknown */
	uint32_t line;        /**< 0: unknown */
	bool inlined;
};

/**
 * Names of the code at `offset` (link-time address; when is_return_address look up offset-1) of an image file;
 * innermost inlined first, the last is the real function. Returns the number of frames (>=1; function NULL when
 * unknown). Valid until symbols_free.
 *
 * A function's parts that the compiler split off (.cold, .part.0, ...) go by the function's own name.
 */
size_t symbols_resolve(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
		       uint64_t offset, bool is_return_address, const struct symbol_frame **frames);

/** How long looking up addresses has taken so far, opening files included. */
uint64_t symbols_spent_ns(const struct symbols *symbols);

/** Whether there is debug information or a full symbol table for the image; the names that it exports do not count. */
bool symbols_image_has_symbols(struct symbols *symbols, const char *path, const uint8_t *build_id,
			       size_t build_id_size);

/** The name as its language writes it (C++, Rust, D), or as it is; cut to `size` bytes with its NUL. */
void symbols_demangle(const char *mangled, char *out, size_t size);

#endif
