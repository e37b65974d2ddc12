/* SPDX-License-Identifier: MIT */
/**
 * Frame patterns, as people type them: "image!", "image!symbol", "symbol" or "image+0xOFFSET", in any case, with * and
 * ?. The `!` that splits is the first one that does not follow "operator".
 */
#ifndef XHEAP_QUERY_PATTERN_H
#define XHEAP_QUERY_PATTERN_H

#include "base/diag.h"
#include "query/frame_names.h"

struct heap_pattern {
	char *text;   /**< as typed */
	char *image;  /**< NULL: any */
	char *symbol; /**< NULL: any, or none */
	bool has_offset;
	uint64_t offset;
	uint32_t hits; /**< names that matched so far */
};

/** Patterns of which one has to match; zero it to begin. What they say of each name is remembered. */
struct heap_patterns {
	struct heap_pattern *items;
	size_t count, capacity;
	bool has_offsets;
	uint8_t *known; /**< by name: 0 not looked at, else 1 + whether it matches */
	size_t known_count;
};

/** Add a pattern. 0, or -EINVAL with the reason in diag. */
int heap_patterns_add(struct heap_patterns *patterns, const char *text, struct diag *diag);

/** Add those of a text, one a line; empty lines and lines that begin with # are passed over. `name` is for messages. */
int heap_patterns_add_list(struct heap_patterns *patterns, const char *text, const char *name, struct diag *diag);

/** Add those of the list in the file. */
int heap_patterns_add_file(struct heap_patterns *patterns, const char *path, struct diag *diag);

void heap_patterns_fini(struct heap_patterns *patterns);

/** Whether one of them matches the frame of this node of the names. */
bool heap_patterns_match(struct heap_patterns *patterns, const struct heap_names *names, uint32_t node);

/** Whether `text` matches `pattern` with * and ?, in any case. */
bool heap_glob(const char *pattern, const char *text);

/**
 * A symbol without what tells its overloads and instances apart: no parameters, no template arguments, no return type;
 * "std::vector<int>::push_back(int const&)" gives "std::vector::push_back". Cut to `size` bytes.
 */
void heap_plain_symbol(const char *symbol, char *plain, size_t size);

#endif
