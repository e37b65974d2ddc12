/* SPDX-License-Identifier: MIT */
/** Targets: an executed image with the processes forked from it, their region, and the logger's work on both. */
#ifndef XHEAP_SESSION_TARGETS_H
#define XHEAP_SESSION_TARGETS_H

#include "session/logger/logger_state.h"

/** Set up the robust list by which the kernel notifies targets of the logger's death. */
void targets_robust_begin(struct logger *logger);

/** Add the target of a stopped process that now has the recorder. */
void target_add(struct logger *logger, struct tracer_result *result);

/** Drain a target whose processes are all gone or detached, and free it. */
void target_remove(struct logger *logger, struct target *target);

/** End the recording of the target: from now on its calls are only counted. */
void target_end_recording(struct target *target);

/** Report, once, that the target's region is damaged, and end its recording. */
void damage_check(struct logger *logger, struct target *target);

/** Report that a limit has kept something of the target out of the trace. */
void limits_check(struct logger *logger, struct target *target);

#endif
