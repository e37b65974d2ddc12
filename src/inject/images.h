/* SPDX-License-Identifier: MIT */
/** The images of a process, as its own memory shows them. */
#ifndef XHEAP_INJECT_IMAGES_H
#define XHEAP_INJECT_IMAGES_H

#include "region/region.h"

/** Read the loaded headers of the image at `base`: its end, bias, tables and build-id. Return false if no ELF image is
    there. */
bool image_read_loaded(int memory, uint64_t base, struct region_image *image, struct region_file *file);

#endif
