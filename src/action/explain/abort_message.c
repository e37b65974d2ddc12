/* SPDX-License-Identifier: MIT */
#include "action/explain/abort_message.h"

#include <stddef.h>
#include <string.h>

#define FREED "the block was freed before"
#define BEHIND "the size of what lies behind the block was overwritten"
#define NO_BLOCK "the address is no block's, or the size before the block was overwritten"
#define CACHED "a freed block was written to"
#define LISTS "sizes or lists of free memory were overwritten: by a write beyond a block, or into a freed one"

/* What begins alike comes after what is longer. */
static const struct abort_meaning meanings[] = {
	{"free(): double free detected in tcache", FREED, false},
	{"double free or corruption (fasttop)", FREED, false},
	{"double free or corruption (top)", FREED, false},
	{"double free or corruption (!prev)", FREED ", or the size behind it was overwritten", false},
	{"double free or corruption (out)", NO_BLOCK, false},
	{"free(): invalid next size", BEHIND, false},
	{"realloc(): invalid next size", BEHIND, false},
	{"free(): invalid pointer", NO_BLOCK, false},
	{"free(): invalid size", NO_BLOCK, false},
	{"realloc(): invalid pointer", NO_BLOCK, false},
	{"realloc(): invalid old size", NO_BLOCK ", or the block was freed before", false},
	{"munmap_chunk(): invalid pointer", NO_BLOCK, false},
	{"mremap_chunk(): invalid pointer", NO_BLOCK, false},
	{"malloc(): corrupted top size", "the size behind the last block of a heap was overwritten", false},
	{"malloc(): unaligned tcache chunk detected", CACHED, true},
	{"malloc(): unaligned fastbin chunk detected", CACHED, false},
	{"malloc_consolidate(): unaligned fastbin chunk detected", CACHED, false},
	{"tcache_thread_shutdown(): unaligned tcache chunk detected", CACHED, false},
	{"free(): unaligned chunk detected in tcache", CACHED, false},
	{"malloc(): ", LISTS, false},
	{"malloc_consolidate(): ", LISTS, false},
	{"realloc(): ", LISTS, false},
	{"calloc(): ", LISTS, false},
	{"free(): ", LISTS, false},
	{"corrupted double-linked list", LISTS, false},
	{"corrupted size vs. prev_size", LISTS, false},
	{"break adjusted to free malloc space", LISTS, false},
};

const struct abort_meaning *abort_meaning_find(const char *message)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (!strncmp(message, meanings[i].begin, strlen(meanings[i].begin)))
			return &meanings[i];
	return NULL;
}
