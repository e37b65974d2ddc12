/* SPDX-License-Identifier: MIT */
/** The images of a process, as its own memory shows them. */
#ifndef XHEAP_INJECT_IMAGES_H
#define XHEAP_INJECT_IMAGES_H

#include "inject/inject.h"

/** Read the loaded headers of the image at `base`: its end, bias and tables, and into *file (NULL: not wanted) the
    build-id. Return false if no ELF image is there. */
bool image_read_loaded(int memory, uint64_t base, struct region_image *image, struct region_file *file);

/** Find the program's first mapping in the maps. Return NULL if its loader has not mapped it yet. */
const struct proc_map *image_find_program(const struct inject *inject, const struct proc_map *maps, int count);

#endif
