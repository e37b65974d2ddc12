/* SPDX-License-Identifier: MIT */
/** The files with symbols of one image: itself, its separate debug file, the small one packed in it. */
#ifndef XHEAP_SYMBOLS_IMAGE_SYMBOLS_H
#define XHEAP_SYMBOLS_IMAGE_SYMBOLS_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

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
	void *memory; /**< owned memory of the file, or NULL */
};

/** The files of an image; any may be missing. */
struct image {
	struct image_file main, debug, mini;
	struct image_file shared;          /**< the part that the debug file shares with others (dwz) */
	const struct image_file *of_dwarf; /**< main or debug: has debug information that is to be read; or NULL */
	/* Read by image_read(), and mini. */
	Dwarf *dwarf;        /**< of main or debug, or NULL */
	Dwarf *shared_dwarf; /**< of shared, or NULL */
};

/** Set all files to "none". */
void image_init(struct image *image);

/** Where else files are looked for. */
struct image_places {
	struct debuginfod *debuginfod;
	const pid_t *processes; /**< in whose root directories the image may lie, as in a container's */
	size_t process_count;
	bool with_separate; /**< the debug information of separate files is opened: unpacking it takes tens of ms */
};

/** Open the files of the image at `path` with this build-id. A missing file is no error: its pointer is NULL. A file
    with another build-id than the recorded one counts as missing. */
void image_open(struct image *image, const char *path, const struct build_id *build_id,
		const struct image_places *places);
/** Read the debug information, and the small symbols if there are no others: unpacking takes tens of ms. The image does
    not move from now on. */
void image_read(struct image *image);
/** Return a number for the files that were opened: as long as it is the same, so are the names that they have. 0: there
    are none. */
uint64_t image_files_hash(const struct image *image);
/** Return whether the file at the path has this build-id, and store its status. */
bool image_is_there(const char *path, const struct build_id *build_id, struct stat *status);
/** Close all files. */
void image_close(struct image *image);

#endif
