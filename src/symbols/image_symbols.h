/* SPDX-License-Identifier: MIT */
/** The files that tell about one image: itself, its separate debug file, the small one packed in it. */
#ifndef XHEAP_SYMBOLS_IMAGE_SYMBOLS_H
#define XHEAP_SYMBOLS_IMAGE_SYMBOLS_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/debuginfod.h"

enum { IMAGE_BUILD_ID_MAX = 64 };

struct build_id {
	uint8_t bytes[IMAGE_BUILD_ID_MAX];
	size_t size; /**< 0: none */
};

/** An opened ELF file. */
struct image_file {
	Elf *elf;     /**< NULL: none */
	int fd;       /**< -1: in memory */
	void *memory; /**< that is ours, or NULL */
};

struct image {
	struct image_file main, debug, mini;
	struct image_file shared; /**< what the debug file has in common with others (dwz) */
	Dwarf *dwarf;             /**< of main or debug, or NULL */
	Dwarf *shared_dwarf;      /**< of shared, or NULL */
};

/** One of which there is nothing. */
void image_init(struct image *image);

/**
 * Open what there is for the image at `path` with this build-id. Nothing found is no error: the parts are NULL.
 * A file with another build-id than the recorded one is taken for no file.
 */
void image_open(struct image *image, const char *path, const struct build_id *build_id, struct debuginfod *debuginfod);
void image_close(struct image *image);

#endif
