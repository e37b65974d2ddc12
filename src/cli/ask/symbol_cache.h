/* SPDX-License-Identifier: MIT */
/**
 * Names of code that were found before: a file for each image below $XDG_CACHE_HOME/xheap/symbols, else
 * ~/.cache/xheap/symbols. A file is a trace without events, so that it is read as carefully as one.
 *
 * Anybody can make a file with the build-id of another one, and a trace that names it. So names count only for an image
 * with the same build-id at the same path. While the image's file is there, it must be the one that the names were
 * found for: by size, time and inode.
 */
#ifndef XHEAP_CLI_SYMBOL_CACHE_H
#define XHEAP_CLI_SYMBOL_CACHE_H

#include <stddef.h>

#include "base/map.h"

struct trace_function;
struct trace_image;

struct symbol_cache {
	struct trace *trace; /**< NULL: there is none */
	struct map rows;     /**< offset -> its place in the trace's symbols */
};

/** Read what is known of the image; nothing when there is no file, or it is no good. */
void symbol_cache_open(struct symbol_cache *cache, const struct trace_image *image);
void symbol_cache_close(struct symbol_cache *cache);

/** The functions of the code at this offset; NULL: not known. Valid until symbol_cache_close(). */
const struct trace_function *symbol_cache_find(const struct symbol_cache *cache, uint64_t offset, size_t *count);

/** The functions at one offset of an image. */
struct symbol_cache_row {
	uint64_t offset;
	const struct trace_function *functions;
	uint32_t count;
};

/** Add rows to the file of the image. A failure is ignored: the names are found anew then. */
void symbol_cache_add(const struct trace_image *image, const struct symbol_cache_row *rows, size_t count);

#endif
