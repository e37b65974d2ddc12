/* SPDX-License-Identifier: MIT */
/** What there is to hook in image files, each looked at once. Thread-safe. */
#ifndef XHEAP_SESSION_HOOK_CACHE_H
#define XHEAP_SESSION_HOOK_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hook/hook.h"
#include "os/proc.h"

struct hook_cache;

struct hook_cache *hook_cache_new(void);
void hook_cache_free(struct hook_cache *cache);

/** Forget the oldest files where there are many. Only while nobody uses what was found. */
void hook_cache_trim(struct hook_cache *cache);

/** The file that pid has mapped. NULL when it cannot be read, or there are too many. Valid until hook_cache_trim(). */
struct hook_image *hook_cache_find(void *cache, pid_t pid, const struct proc_map *map, bool is_main);

#endif
