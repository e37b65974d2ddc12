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

/** Patterns of which one has to match; zero it to begin. The answer for each name is remembered. */
struct heap_patterns {
	struct heap_pattern *items;
	size_t count, capacity;
	bool has_offsets;
	uint8_t *known; /**< by name: 0 not looked at, else 1 + whether it matches */
	size_t known_count;
};

/** Add a pattern. Return 0, or -EINVAL with the reason in diag. */
int heap_patterns_add(struct heap_patterns *patterns, const char *text, struct diag *diag);

/** Add the patterns of a text, one a line; skip empty lines and lines that begin with #. `name` is for messages. Return
    0, or -EINVAL with the reason in diag. */
int heap_patterns_add_list(struct heap_patterns *patterns, const char *text, const char *name, struct diag *diag);

/** Add the patterns of the list in the file. Return 0, or a negative errno with the reason in diag. */
int heap_patterns_add_file(struct heap_patterns *patterns, const char *path, struct diag *diag);

/** Free the patterns. */
void heap_patterns_fini(struct heap_patterns *patterns);

/** Return whether one of them matches the frame of this node of the names. */
bool heap_patterns_match(struct heap_patterns *patterns, const struct heap_names *names, uint32_t node);

/** Return whether `text` matches `pattern` with * and ?, in any case. */
bool heap_glob(const char *pattern, const char *text);

/**
 * Write a symbol without parameters, template arguments and return type, which overloads and instances differ in:
 * "std::vector<int>::push_back(int const&)" gives "std::vector::push_back". The text is cut to `size` bytes.
 */
void heap_plain_symbol(const char *symbol, char *plain, size_t size);

#endif
