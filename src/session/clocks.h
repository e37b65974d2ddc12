/* SPDX-License-Identifier: MIT */
/** Which clocks there are to take times from. */
#ifndef XHEAP_SESSION_CLOCKS_H
#define XHEAP_SESSION_CLOCKS_H

#include "base/diag.h"
#include "region/layout.h"
#include "session/options.h"

/** Whether there is such a clock: 0, or a negative errno with the reason. */
int session_clock_check(enum session_clock_choice choice, struct diag *diag);

/** What a trace calls it. */
const char *session_clock_name(enum region_clock kind);

#endif
