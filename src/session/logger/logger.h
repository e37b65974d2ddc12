/* SPDX-License-Identifier: MIT */
/** The logger, the one process behind a session: it owns the regions, drains them, writes the trace. */
#ifndef XHEAP_SESSION_LOGGER_H
#define XHEAP_SESSION_LOGGER_H

#include "session/control/options.h"

/** The exit status of a logger that ended for lack of memory. */
enum { LOGGER_NO_MEMORY = 3 };

/** Run the logger in this process until its last target has ended. control: its end of the socket pair. Return the exit
    status. */
int logger_run(const struct session_options *options, int control);

#endif
