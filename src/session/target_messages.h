/* SPDX-License-Identifier: MIT */
/** What targets ask of the logger by the messages of their region: hook an image that was loaded, trace what is
    executed next. */
#ifndef XHEAP_SESSION_TARGET_MESSAGES_H
#define XHEAP_SESSION_TARGET_MESSAGES_H

#include "session/logger_state.h"

/** Answer what a target asks. A process that is being detached from, `leaving`, gets nothing but its answer; NULL: none
    is. True when it had asked. */
bool requests_answer(struct logger *logger, struct target *target, const struct member *leaving);

/** Free the messages of threads that ended before they had their answer, or had taken no notice of it. */
void requests_reap(struct target *target);

/** Tell the controllers and the trace that calls of functions that could not be hooked are missing. */
void unhooked_note(struct logger *logger, pid_t pid, const struct inject *inject);

#endif
