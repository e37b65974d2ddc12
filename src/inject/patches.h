/* SPDX-License-Identifier: MIT */
/** Patches of the entries of an image's functions: jumps that lead to hooks. */
#ifndef XHEAP_INJECT_PATCHES_H
#define XHEAP_INJECT_PATCHES_H

#include "inject/inject.h"

/** Below this address, an instruction can name any address of low memory, whatever its distance. */
#define LOW_CODE_END (UINT64_C(1) << 31)

/** Note that a function could not be patched, and why. */
void inject_refuse(struct inject *inject, const char *name, const char *path, const char *why);

/** Return how many functions of the executable have to be patched. */
uint32_t patches_count(const struct inject *inject, const struct hook_image *hooks);

/** Return whether the code of an executable in low memory has spare bytes behind it for so many patches, and store
    where. at: where in `memory` the executable is, which may be a file. */
bool doors_fit(int memory, const struct region_image *executable, uint64_t at, uint32_t count,
	       struct inject_doors *doors);

/** Reserve spare bytes behind the code of an executable in low memory for all its patches, if there are enough. */
void doors_open(struct inject *inject, const struct region_image *executable, uint32_t count);

/** Patch the entries of an image, or with is_gathering only note them. */
void patch_image(struct inject *inject, const struct hook_image *hooks, struct inject_image *image, const char *path,
		 bool is_main);

/** Note whether a running program has other words where the tables of Python's allocators would be changed. */
void patches_check_words(struct inject *inject);

/** Forget the patches of an image that is unloaded: no thread is in its functions. Their memory is used again. */
void patches_forget(struct inject *inject, const struct inject_image *image);

#endif
