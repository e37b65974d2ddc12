/* SPDX-License-Identifier: MIT */
/** Format specifiers: what stands behind the comma of a query, and in ToDisplayString(). */
#ifndef XHEAP_DX_SPECIFIER_H
#define XHEAP_DX_SPECIFIER_H

#include "dx/core/query.h"

struct dx_specifier {
	unsigned base;      /**< of numbers: 2, 8, 10, 16; 0: as they are, hexadecimal as a rule */
	bool has_character; /**< c: a number is shown as a character, too */
	bool is_bare;       /**< sb, sub: texts have no quotes */
	bool is_quoted;     /**< s, su: texts have quotes */
	bool is_raw;        /**< !: members instead of what stands for an object */
	bool is_plain;      /**< nd: without derived types; nothing changes */
	bool has_count;
	uint64_t count;         /**< elements that are shown */
	const char *count_text; /**< of "[expr]": the expression, up to its bracket; NULL: none */
	size_t count_length;
	const char *wrong_text; /**< of a refusal: the word that is none */
};

/** Read specifiers with commas between them. 0, or -EINVAL with the reason in `diag` and the place in wrong_text. */
int dx_specifier_parse(const char *text, struct dx_specifier *specifier, struct diag *diag);

/** Return the value as a text. */
const char *dx_specifier_text(struct dx_query *query, const struct dx_value *value,
			      const struct dx_specifier *specifier);

/** Return a value as the text that a person reads, in hexadecimal or as `base` says (2, 8, 10, 16; 0: as it is). */
const char *dx_show(struct dx_query *query, const struct dx_value *value, unsigned base);

#endif
