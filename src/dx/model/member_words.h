/* SPDX-License-Identifier: MIT */
/** Members that are one of a few words, for comparisons that can never be true. */
#ifndef XHEAP_DX_MEMBER_WORDS_H
#define XHEAP_DX_MEMBER_WORDS_H

#include "dx/core/query.h"

/** The texts that a member may have. */
struct dx_words {
	const char *const *words;
	size_t count;      /**< 0: it may have any */
	bool are_of_trace; /**< another trace may have others */
};

/** Return the texts that a member may have, in the query's arena. */
struct dx_words dx_member_words(struct dx_query *query, const struct dx_class *class, const struct dx_member *member);

#endif
