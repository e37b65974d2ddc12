/* SPDX-License-Identifier: MIT */
/** Targets: an executed image with what it forked, their region, and what the logger does about both. */
#ifndef XHEAP_SESSION_TARGETS_H
#define XHEAP_SESSION_TARGETS_H

#include "session/logger_state.h"

/** Set up the list by which the kernel tells targets of the logger's death. */
void targets_robust_begin(struct logger *logger);

/** Add the target of a held process that has the recorder now. */
void target_add(struct logger *logger, struct tracer_result *result);

/** Take what is left of a target whose processes are gone or detached from, and free it. */
void target_remove(struct logger *logger, struct target *target);

/** From now on the target's calls are only counted: nothing more goes into the trace. */
void target_end_recording(struct target *target);

/** Note and tell, once, that the target's region is damaged: its recording ends. */
void damage_check(struct logger *logger, struct target *target);

/** Note and tell that not everything of the target can be kept. */
void limits_check(struct logger *logger, struct target *target);

#endif
