/* SPDX-License-Identifier: MIT */
/** Recovery of a trace alone: the machine stopped, and with it the memory of the session. */
#ifndef XHEAP_SESSION_RECOVER_FILE_H
#define XHEAP_SESSION_RECOVER_FILE_H

#include "session/recover/recover.h"

/** Complete the trace at `path`, or a copy of it, up to where it can be read. Note in it that its end is missing. Set
    the path, total_events and size_bytes of the result. Return 0 or a negative errno, with the reason in `diag`:
    -EEXIST, the trace is whole; -EBUSY, somebody writes to it. */
int recover_file(const char *path, const struct recover_options *options, struct recover_result *result,
		 struct diag *diag);

#endif
