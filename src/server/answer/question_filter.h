/* SPDX-License-Identifier: MIT */
/** The filter of a question. */
#ifndef XHEAP_SERVER_QUESTION_FILTER_H
#define XHEAP_SERVER_QUESTION_FILTER_H

#include "query/filter_words.h"

/** Take the words of a filter: options and their values, as a command has them, with line feeds between them. Writes
    to the text, which must be valid as long as `asked` is. Return 0, or -EINVAL with the reason in `diag`. */
int question_filter_take(struct filter_request *asked, char *text, struct diag *diag);

#endif
