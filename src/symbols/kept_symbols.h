/* SPDX-License-Identifier: MIT */
/**
 * Names of code that were found before, and are found again without a search: to read debug information takes longer
 * than all else that a small question does. They hold for an image as long as its files of symbols are the same ones.
 */
#ifndef XHEAP_SYMBOLS_KEPT_SYMBOLS_H
#define XHEAP_SYMBOLS_KEPT_SYMBOLS_H

#include "symbols/image_symbols.h"
#include "symbols/symbols.h"

/** An image with answers. */
struct kept_image {
	uint64_t files; /**< image_files_hash() */
	uint32_t path;  /**< a text */
	uint32_t has_symbols, build_id_size, reserved;
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
	uint64_t first, count; /**< of the answers, by rising address */
};

/** The functions at an address of an image. */
struct kept_symbol {
	uint64_t address;
	uint32_t first, count; /**< of the frames */
};

/** As struct symbol_frame. */
struct kept_frame {
	uint32_t function, mangled, file, line; /**< texts, and a number */
	uint32_t is_inlined;
};

/** All of it. A text is its place in `texts` plus 1, 0: there is none. Nothing is checked where it is not used. */
struct kept_symbols {
	char *texts; /**< each with its NUL */
	struct kept_image *images;
	struct kept_symbol *symbols;
	struct kept_frame *frames;
	size_t text_bytes, image_count, symbol_count, frame_count;
};

/** Note all that was found so far. End it with kept_symbols_fini(). */
void symbols_keep(struct symbols *symbols, struct kept_symbols *kept);

/** Return whether much was found that was not learned. */
bool symbols_has_news(struct symbols *symbols);

/** Take over what was noted. Before the first search. */
void symbols_learn(struct symbols *symbols, const struct kept_symbols *kept);

/** Return the image's place, if it is there with these files; else -1. 0: it has none now, and may have had any. */
ptrdiff_t kept_symbols_image(const struct kept_symbols *kept, const char *path, const struct build_id *build_id,
			     uint64_t files);

/** Return what is known of an address of the image at this place, or NULL. */
const struct kept_symbol *kept_symbols_find(const struct kept_symbols *kept, ptrdiff_t image, uint64_t address);

/** Return the text, which is that of `kept`; NULL: there is none. */
const char *kept_symbols_text(const struct kept_symbols *kept, uint32_t text);

/** Free the memory. */
void kept_symbols_fini(struct kept_symbols *kept);

#endif
