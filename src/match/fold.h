/* SPDX-License-Identifier: MIT */
/** Folding: replacing ended allocations of a trace by sums (docs/decisions/018). */
#ifndef XHEAP_MATCH_FOLD_H
#define XHEAP_MATCH_FOLD_H

#include <stdint.h>

#include "base/diag.h"

/** Write to `output` a folded copy of the trace at `source`, which may have sums itself. Blocks that ended by until_ns
    are added up; the events of blocks that were live then, and all later events, are kept unchanged. Nothing before
    until_ns may be missing. Return 0, or a negative errno with the reason in `diag`; then there is no output. */
int heap_fold(const char *output, const char *source, int64_t until_ns, struct diag *diag);

#endif
