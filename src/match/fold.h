/* SPDX-License-Identifier: MIT */
/** Making sums of what has ended (docs/decisions/018). */
#ifndef XHEAP_MATCH_FOLD_H
#define XHEAP_MATCH_FOLD_H

#include <stdint.h>

#include "base/diag.h"

/**
 * Write at `output` what takes the place of the trace at `source`, which may have sums itself: blocks that had ended by
 * until_ns are in sums, and the events of those that were live then, and all events behind it, are as they were.
 * Nothing before until_ns may be missing. 0, or a negative errno with the reason in diag; then there is no output.
 */
int heap_fold(const char *output, const char *source, int64_t until_ns, struct diag *diag);

#endif
