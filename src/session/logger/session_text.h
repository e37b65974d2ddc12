/* SPDX-License-Identifier: MIT */
/** The texts about a session: its options in the trace, and the facts for recovery in its directory. */
#ifndef XHEAP_SESSION_SESSION_TEXT_H
#define XHEAP_SESSION_SESSION_TEXT_H

#include "session/logger/logger_state.h"

/** Write the file `session` of the session's directory, which recovery reads first. */
void logger_session_write(struct logger *logger);

/** Write the session's options into the trace. */
void logger_options_write(struct logger *logger);

#endif
