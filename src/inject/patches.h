/* SPDX-License-Identifier: MIT */
/** Patching the entries of an image's functions, so that they lead to hooks. */
#ifndef XHEAP_INJECT_PATCHES_H
#define XHEAP_INJECT_PATCHES_H

#include "inject/inject.h"

/** Below, an instruction can name an address whatever lies between. */
#define LOW_CODE_END (UINT64_C(1) << 31)

/** Note that functions could not be patched. */
void inject_refuse(struct inject *inject, const char *name, const char *path, const char *why);

/** Functions of the executable that have to be patched. */
uint32_t patches_count(const struct hook_image *hooks);

/** Take bytes behind the code of an executable in low memory, enough for all its patches. */
void doors_open(struct inject *inject, const struct region_image *executable, uint32_t count);

/** Patch the entries of an image, or gather them. */
void patch_image(struct inject *inject, const struct hook_image *hooks, struct inject_image *image, const char *path,
		 bool is_main);

#endif
