/* SPDX-License-Identifier: MIT */
/** Members: the processes of a target, from when they are found to their end or detach. */
#ifndef XHEAP_SESSION_MEMBERS_H
#define XHEAP_SESSION_MEMBERS_H

#include "session/logger_state.h"

/** A process is the target's. identity: of pid, the member's from now on; inner: its number in its own namespace. */
void member_begin(const struct logger *logger, struct target *target, uint32_t index, pid_t pid,
		  struct identity identity, pid_t inner);

/** Free what is kept of a member. */
void member_release(struct member *member);

/** Note how a living member ended (enum trace_end, status), at these ticks. */
void member_end(struct logger *logger, struct target *target, uint32_t index, uint8_t end, int32_t status,
		uint64_t ticks);

bool member_has_ended(const struct member *member);

/** Whether a process has the target's region mapped. */
bool process_has_region(const struct target *target, pid_t pid);

/** The process outside of its namespace that is `inner` in it and has the place `index` of the region, 0 when there is
    none; *identity is the caller's. */
pid_t process_outside(const struct target *target, pid_t inner, uint32_t index, struct identity *identity);

/** Note members that have ended; their status may come a little later, from the command or the kernel. now: as
    monotonic_now_ns(). */
void members_check(struct logger *logger, struct target *target, uint64_t now);

/** Write how much of a member's memory is resident into the trace when it has changed enough. */
void member_sample(struct logger *logger, struct target *target, uint32_t index, uint64_t now);

bool thread_lives(const struct member *member, pid_t tid);

/** Free the slots of threads that are gone. */
void threads_reap(struct target *target);

/** Detach from every process. */
void detach_all(struct logger *logger);

#endif
