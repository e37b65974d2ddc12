/* SPDX-License-Identifier: MIT */
/**
 * Frame patterns, as people type them: "image!", "image!symbol", "symbol" or "image+0xOFFSET", in any case, with * and
 * ?. The `!` that splits is the first one that does not follow "operator".
 *
 * A pattern that was typed without `!` and `::` also matches the last part of a qualified name ("render" matches
 * "Server::render"), if it matches no name of the trace as a whole. So all names have to be there before it is compared
 * with one: heap_patterns_settle().
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
	uint32_t hits;     /**< names that matched so far */
	bool may_be_last;  /**< typed without `!` and `::` */
	bool is_last_part; /**< compared with the last part of names: no whole name matches */
};

/** Patterns of which one has to match; zero it to begin. The answer for each name is remembered. */
struct heap_patterns {
	struct heap_pattern *items;
	size_t count, capacity;
	bool has_offsets;
	/** a list of our own: symbols are compared with the owners of a name (query/plain_name.h), so that no code of
	    users matches */
	bool is_of_libraries;
	uint32_t settled_count; /**< names that were there when the patterns were settled */
	uint8_t *known;         /**< by name: 0 not looked at, else 1 + whether it matches */
	size_t known_count;
};

/** Add a pattern that was typed. Return 0, or -EINVAL with the reason in diag. */
int heap_patterns_add(struct heap_patterns *patterns, const char *text, struct diag *diag);

/** Add the patterns of a text, one a line; skip empty lines and lines that begin with #. `name` is for messages. Return
    0, or -EINVAL with the reason in diag. */
int heap_patterns_add_list(struct heap_patterns *patterns, const char *text, const char *name, struct diag *diag);

/** Add the patterns of the list in the file. Return 0, or a negative errno with the reason in diag. */
int heap_patterns_add_file(struct heap_patterns *patterns, const char *path, struct diag *diag);

/** Free the patterns. */
void heap_patterns_fini(struct heap_patterns *patterns);

/** Return whether one of them may match the last part of a name. */
bool heap_patterns_may_be_last(const struct heap_patterns *patterns);

/** Find the patterns that match no name as a whole: these are compared with the last parts of names from now on. To be
    called when the stacks have names (heap_names_name_sites()), of all sources of a report; it costs nothing if there
    are no new names. Without patterns, names may be NULL. */
void heap_patterns_settle(struct heap_patterns *patterns, const struct heap_names *names);

/** Compare the patterns that may match the last part of a name with last parts from now on: the caller has found that
    none of them matches a name as a whole. */
void heap_patterns_use_last_parts(struct heap_patterns *patterns);

/** Return the texts of the names that the pattern matches as their last part, in order; of others none. The caller
    frees the array. */
const char **heap_pattern_last_parts(const struct heap_pattern *pattern, const struct heap_names *names, size_t *count);

/** Return whether one of them matches the frame of this node of the names. */
bool heap_patterns_match(struct heap_patterns *patterns, const struct heap_names *names, uint32_t node);

/** Return whether `text` matches `pattern` with * and ?, in any case. */
bool heap_glob(const char *pattern, const char *text);

#endif
