/* SPDX-License-Identifier: MIT */
/** What stands for no row, and for no time. */
#ifndef XHEAP_TRACE_ROW_IDS_H
#define XHEAP_TRACE_ROW_IDS_H

#include <stdint.h>

/** An id that names nothing. */
#define TRACE_NONE UINT32_MAX

/** A time that is not known, or has not come. */
#define TRACE_TIME_NONE INT64_MAX

#endif
