/* SPDX-License-Identifier: MIT */
/** The search for processes that run untraced. */
#ifndef XHEAP_SESSION_UNTRACED_H
#define XHEAP_SESSION_UNTRACED_H

#include "session/logger/logger_state.h"

struct trace_process;

/** Begin to search for untraced processes. */
void untraced_begin(struct logger *logger);

/** End the search and free its state; calling it twice is harmless. */
void untraced_end(struct logger *logger);

/** Write a process that runs untraced into the trace, with the reason in its note, and notify the controllers. */
void untraced_add(struct logger *logger, const struct trace_process *process);

/** Mark a process that has executed an image as known: it is recorded. */
void untraced_know(struct logger *logger, pid_t pid);

/** Mark the children of a process as known: they existed before the attach. */
void untraced_know_children(struct logger *logger, pid_t pid);

/** Search for processes that descend from recorded ones and have executed an image without an announcement; report
    each. Most calls return at once since a search is not due; with is_last it always runs. now: monotonic_now_ns().
    Return true if the next search should come soon. */
bool untraced_search(struct logger *logger, uint64_t now, bool is_last);

#endif
