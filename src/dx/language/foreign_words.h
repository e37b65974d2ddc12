/* SPDX-License-Identifier: MIT */
/** What people write who know other languages or debuggers, and what it is here: for refusals. */
#ifndef XHEAP_DX_FOREIGN_WORDS_H
#define XHEAP_DX_FOREIGN_WORDS_H

#include "dx/core/value.h"

/** Return what to write in place of a sign or a word between values, such as "and"; NULL: it is not known. */
const char *dx_foreign_sign(const char *word);

/** Return what to write in place of a member or a method that a value of the kind, of the class unless it is NULL, does
    not have; NULL: it is not known. */
const char *dx_foreign_name(unsigned kind, const struct dx_class *class, const char *name);

/** Return what to write in place of a text that a member with these words never is; NULL: it is not known. */
const char *dx_foreign_text(const char *const *words, size_t count, const char *text);

#endif
