/* SPDX-License-Identifier: MIT */
/** The columns of events. */
#ifndef XHEAP_COLUMNS_EVENT_COLUMNS_H
#define XHEAP_COLUMNS_EVENT_COLUMNS_H

#include "columns/column.h"

/** Return the call that an event is; its function is FUNCTION_COUNT if that is not known. */
struct call_record column_call(const struct column_row *row);

#endif
