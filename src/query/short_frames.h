/* SPDX-License-Identifier: MIT */
/** Short forms of frames' names (symbols/short_name.h), each for one function only: a number tells those apart that
    read alike. */
#ifndef XHEAP_QUERY_SHORT_FRAMES_H
#define XHEAP_QUERY_SHORT_FRAMES_H

#include "base/arena.h"
#include "query/frame_names.h"

/** What the short form of a name is made of. */
struct short_frame {
	const char *plain; /**< the short form without a number; NULL: not made yet, or there is no symbol */
	const char *file; /**< the first place of code with this name, in the order of files and lines; NULL: unknown */
	uint32_t line;
	bool is_read, has_place; /**< it is known whether the short form depends on the place; it does */
};

/** The short forms of the names of a tree. Zero it to begin. */
struct short_frames {
	struct arena arena;
	struct short_frame *items; /**< by name */
	size_t count, capacity;
	uint32_t made_count; /**< names when the short forms were made */
	bool is_stale;       /**< a place has changed since */
};

/** Note that code with this symbol is at the place; nothing happens unless its short form depends on that. */
void short_frames_place(struct short_frames *frames, uint32_t name, const char *symbol, const char *file,
			uint32_t line);

/** Set short_symbol and short_text of all names. Names of one image that would read alike get #2, #3, ... in the order
    of their symbols, so that the same names have the same numbers each time. When it is cancelled (base/cancel.h), a
    later call makes them. */
void short_frames_make(struct short_frames *frames, struct heap_name *names, uint32_t count, const bool *is_cancelled);

/** Free the texts. */
void short_frames_fini(struct short_frames *frames);

#endif
