/* SPDX-License-Identifier: MIT */
/** The functions to hook in image files, each file read once. Threads that want a new file at the same time each read
    it: no target waits for another one's. All threads of the logger may call it. */
#ifndef XHEAP_SESSION_HOOK_CACHE_H
#define XHEAP_SESSION_HOOK_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hook/hook.h"
#include "os/proc.h"

struct hook_cache;

/** Make an empty cache; NULL without memory. */
struct hook_cache *hook_cache_new(void);
/** Free the cache and everything that was found in it. */
void hook_cache_free(struct hook_cache *cache);

/** Begin to read the loader and the C library of this process, in a thread that ends by itself: most targets have the
 *  same. Do not free the cache afterwards. */
void hook_cache_prepare(struct hook_cache *cache);

/** Forget the oldest files if there are many. Only while no caller uses a result of hook_cache_find(). */
void hook_cache_trim(struct hook_cache *cache);

/** Find the file that `pid` has mapped, reading it if it is new. Return NULL if it cannot be read, with the reason in
    *why, a static text, or if the cache is full. The result stays the cache's and is valid until hook_cache_trim(). */
struct hook_image *hook_cache_find(void *cache, pid_t pid, const struct proc_map *map, bool is_main, const char **why);

#endif
