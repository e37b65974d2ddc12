/* SPDX-License-Identifier: MIT */
/** The one process behind a session: owns its regions, drains them, writes the trace. */
#ifndef XHEAP_SESSION_LOGGER_H
#define XHEAP_SESSION_LOGGER_H

#include "session/options.h"

/** Its exit status when it ended since there was no memory. */
enum { LOGGER_NO_MEMORY = 3 };

/** Run the logger in this process until its last target has ended; control is its end of the socket pair. Returns the
    exit status. */
int logger_run(const struct session_options *options, int control);

#endif
