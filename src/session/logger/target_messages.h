/* SPDX-License-Identifier: MIT */
/** The messages by which targets ask the logger: to hook an image that was loaded, to trace what is executed next. */
#ifndef XHEAP_SESSION_TARGET_MESSAGES_H
#define XHEAP_SESSION_TARGET_MESSAGES_H

#include "session/logger/logger_state.h"

/** Answer the target's messages. leaving: a process that is being detached from, whose messages get only an empty
    answer; NULL: none. Return true if there was a message. */
bool requests_answer(struct logger *logger, struct target *target, const struct member *leaving);

/** Free the messages of threads that ended before they took their answer. */
void requests_reap(struct target *target);

/** Report to the controllers and the trace that calls of functions that could not be hooked are missing. */
void unhooked_note(struct logger *logger, pid_t pid, const struct inject *inject);

/** Set the trace ids of the image that `pid` of the target is about to execute. caller: the index of the process that
    announced the exec. */
void logger_exec_identity(struct target *target, pid_t pid, uint64_t caller, struct tracer_task *request);

/** Begin to write a core of a live process of the target: `task` has its path, and who is answered. Return false if
    that cannot begin. */
bool logger_core_start(struct logger *logger, struct target *target, pid_t pid, struct tracer_task *task);

#endif
