/* SPDX-License-Identifier: MIT */
/** The threads' caches of glibc's malloc (tcache). */
#ifndef XHEAP_HEAPWALK_THREAD_CACHES_H
#define XHEAP_HEAPWALK_THREAD_CACHES_H

#include "heapwalk/free_lists.h"

/** The reason to give where caches_find() or caches_drop() fails. */
#define CACHES_MISSING "the caches of its threads were not found"

/** Find the threads' caches and the keys of the blocks in them. Return false if they are not where they should be. */
bool caches_find(struct heap_reading *reading);

/** Note the caches of threads that have begun since. */
void caches_renew(struct heap_reading *reading);

/** Note the caches of threads that have called the heap first since caches_renew(). */
void caches_follow(struct heap_reading *reading);

/** Remove the caches themselves from the found blocks, also those of threads that have begun since. Return false if one
    that was not seen may be among the blocks. */
bool caches_drop(struct heap_reading *reading);

/** List the chunks in these bins of all caches that exist now. Return false if some change too fast to be read. */
bool caches_list(struct heap_reading *reading, const struct cache_bins *bins, struct map *cached);

#endif
