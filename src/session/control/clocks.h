/* SPDX-License-Identifier: MIT */
/** The clocks that a session can take the times of events from. */
#ifndef XHEAP_SESSION_CLOCKS_H
#define XHEAP_SESSION_CLOCKS_H

#include "base/diag.h"
#include "region/layout.h"
#include "session/control/options.h"

/** Check that the machine has the chosen clock. Return 0, or a negative errno with the reason in `diag`. */
int session_clock_check(enum session_clock_choice choice, struct diag *diag);

/** Return the clock's name in a trace: static text. */
const char *session_clock_name(enum region_clock kind);

#endif
