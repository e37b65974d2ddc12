/* SPDX-License-Identifier: MIT */
/** The names that may follow the begin of a query. */
#ifndef XHEAP_DX_COMPLETION_H
#define XHEAP_DX_COMPLETION_H

#include "dx/language/checker.h"

/** Visit the members and methods that may follow `text`: an expression that is not at its end, up to and with a dot.
    False: the type of what stands before the dot is not known. */
bool dx_complete(struct dx_query *query, const char *text, dx_name_visit *visit, void *context);

#endif
