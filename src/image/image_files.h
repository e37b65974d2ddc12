/* SPDX-License-Identifier: MIT */
/** The files of image options: one option in each file NAME.conf of a directory. Only files are trusted that belong to
    the caller, as the directory does, and that nobody else may write. */
#ifndef XHEAP_IMAGE_IMAGE_FILES_H
#define XHEAP_IMAGE_IMAGE_FILES_H

#include "image/image_option.h"
#include "session/tracer/image_start.h"

/** A file that is not in force, or a directory of which none is. */
struct image_mistake {
	char file[IMAGE_NAME_BYTES];  /**< "": the directory */
	char title[IMAGE_PATH_BYTES]; /**< what its option would be called; "": it has no readable Image or Service */
	struct diag why;              /**< names the file, and the line if one is wrong */
};

/** Options as they are read from the directory. Zero it first. */
struct image_options {
	struct image_option *items;
	size_t count, capacity;
	struct image_mistake *mistakes;
	size_t mistake_count, mistake_capacity;
};

/** Read all files, in the order of their names. Files with mistakes are left out, and named in `mistakes`. A missing
    directory has no files. */
void image_options_read(struct image_options *options);
/** Free the arrays. */
void image_options_fini(struct image_options *options);

/** Return the option whose image or file has this name; NULL: there is none. */
struct image_option *image_options_find(const struct image_options *options, const char *image);

/** Return the first mistake whose file has this name, or whose option has, or would have; NULL: there is none. */
const struct image_mistake *image_options_find_mistake(const struct image_options *options, const char *image);

/** Write the option's file, whole or not at all; it survives a power loss. Makes the directory. Return 0 or a negative
    errno. */
int image_file_write(struct image_option *option, struct diag *diag);

/** Remove the file. It stays removed after a power loss. Return 0 or a negative errno. */
int image_file_remove(const char *file, struct diag *diag);

/** Make the directory and those above it, owned by the caller. Return 0 or a negative errno. */
int image_directory_make(enum image_directory directory, mode_t mode, struct diag *diag);

#endif
