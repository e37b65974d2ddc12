/* SPDX-License-Identifier: MIT */
/**
 * The indexes in the user's cache (base/cache.h). An index has the name of its trace's contents, so a trace that was
 * moved, renamed or copied keeps its index. All indexes together have a limit, and the least recently used ones are
 * removed first. Older versions of xheap put an index beside its trace, as FILE.index; it is still read.
 */
#ifndef XHEAP_TABLE_INDEX_CACHE_H
#define XHEAP_TABLE_INDEX_CACHE_H

#include "base/cache.h"
#include "table/table.h"

enum { INDEX_CACHE_PLACES = 2, INDEX_CACHE_NAME_BYTES = 40 };

/** Set the paths where the index of a trace may be: in the cache, and beside the trace. A path that there cannot be is
    NULL. The caller frees the paths. */
void index_cache_paths(char *paths[INDEX_CACHE_PLACES], const struct trace *trace, const char *trace_path);

/** Read the index of a trace. *path is its path then, the caller's (free); otherwise NULL. Return 0, or a negative
    errno; -ENOENT: there is none. */
int index_cache_read(struct heap_table **out, const struct trace *trace, const char *trace_path, char **path);

/** Set `path` to the directory of indexes, with a "/" behind it, if there is one. Return 0, or a negative errno with
    the reason in `diag`. */
int index_cache_directory(char path[CACHE_PATH_BYTES], struct diag *diag);

/** Return the most bytes that all indexes of the directory may have together. */
uint64_t index_cache_limit_bytes(const char *directory);

/** Make a file without a name for an index. Return a descriptor, or a negative errno with the reason in `diag`. */
int index_cache_begin(struct diag *diag);

/** An index that was made, and its effect on the others. */
struct index_cache_made {
	char directory[CACHE_PATH_BYTES];
	uint64_t bytes, limit_bytes; /**< of this index; of all of them */
	uint32_t removed_count;      /**< older ones that were removed to keep the limit */
	uint64_t removed_bytes;
};

/** Complete the file into which the table was built, and remove the least recently used other indexes until all
    together keep the limit. Return 0, or a negative errno with the reason in `diag`. */
int index_cache_write(const struct heap_table *table, const char *trace_path, struct index_cache_made *made,
		      struct diag *diag);

/** An index in the cache. */
struct index_cache_entry {
	char name[INDEX_CACHE_NAME_BYTES];
	uint64_t bytes;
	int64_t used_ns; /**< last, in CLOCK_REALTIME */
};

struct index_cache_list {
	char directory[CACHE_PATH_BYTES]; /**< with a "/" behind it */
	struct index_cache_entry *entries;
	size_t count, capacity;
};

/** List the indexes in the cache, the least recently used one first. The caller calls index_cache_list_fini() in any
    case. Return 0, or a negative errno with the reason in `diag`; -ENOENT: there is no cache. */
int index_cache_list(struct index_cache_list *list, struct diag *diag);
void index_cache_list_fini(struct index_cache_list *list);

/** Return whether a file is an index, whole or damaged, by its first bytes. Set `origin`, of HEAP_INDEX_ORIGIN_BYTES,
    to the path that its trace had; "": it is not known. */
bool index_cache_is_index(const char *path, char *origin);

#endif
