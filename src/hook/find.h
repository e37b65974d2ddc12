/* SPDX-License-Identifier: MIT */
/** The choice of functions to hook in an image. */
#ifndef XHEAP_HOOK_FIND_H
#define XHEAP_HOOK_FIND_H

#include <stdbool.h>
#include <stddef.h>

struct diag;
struct hook_image;

/** Read the ELF file of `size` bytes at `data` (mapped or read; hostile). is_main: it is the executed file, and local
    symbols count if it is static. Return 0, or a negative errno with the reason. The caller frees the result by
    hook_image_fini(). */
int hook_image_read(struct hook_image *image, const void *data, size_t size, bool is_main, struct diag *diag);
/** Free the targets. */
void hook_image_fini(struct hook_image *image);

#endif
