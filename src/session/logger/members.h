/* SPDX-License-Identifier: MIT */
/** Members: the processes of a target, from when they are found to their end or detach. */
#ifndef XHEAP_SESSION_MEMBERS_H
#define XHEAP_SESSION_MEMBERS_H

#include "session/logger/logger_state.h"

/** Begin a member: a process of the target. identity: of `pid`, owned by the member from now on. inner: its number in
    its own namespace. */
void member_begin(struct logger *logger, struct target *target, uint32_t index, pid_t pid, struct identity identity,
		  pid_t inner);

/** Free what a member owns. */
void member_release(struct member *member);

/** Record the end of a live member (enum trace_end, status), at these ticks. */
void member_end(struct logger *logger, struct target *target, uint32_t index, uint8_t end, int32_t status,
		uint64_t ticks);

/** Return whether the member's process has ended. */
bool member_has_ended(const struct member *member);

/** Return whether a process has the target's region mapped. */
bool process_has_region(const struct target *target, pid_t pid);

/** Find the process that is `inner` in its namespace and has the place `index` of the region. Return its pid in the
    logger's namespace, 0 if there is none. The caller owns *identity. */
pid_t process_outside(const struct target *target, pid_t inner, uint32_t index, struct identity *identity);

/** Record the ends of members. A status may come a little later, from the command or the kernel. now:
    monotonic_now_ns(). */
void members_check(struct logger *logger, struct target *target, uint64_t now);

/** Read the mappings of all members now, for a quarter of a second at most. */
void members_read_memory(struct logger *logger);

/** Write a member's resident memory into the trace if it has changed enough. */
void member_sample(struct logger *logger, struct target *target, uint32_t index, uint64_t now);

/** Return whether the member's process has a live thread `tid` (a number of the process's own namespace). */
bool thread_lives(const struct member *member, pid_t tid);

/** Drain and free the slots of threads that are gone. */
void threads_reap(struct target *target);

/** Detach from every process. */
void detach_all(struct logger *logger);

/** Find forked processes that have entered themselves in the target's region. */
void logger_find_members(struct logger *logger, struct target *target);

/** Return the index of the live process among the target's, or UINT32_MAX. */
uint32_t logger_member_of_pid(const struct target *target, pid_t pid);

/** Return whether the process is a live one of a target. */
bool logger_has_pid(const struct logger *logger, pid_t pid);

/** Detach from the process at `index` and report the result to the controllers. On failure return a negative errno with
 *  the reason in `diag`; without `diag` print a note, take the process for detached, and return 0. */
int logger_detach_member(struct logger *logger, struct target *target, uint32_t index, struct diag *diag);

#endif
