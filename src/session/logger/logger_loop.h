/* SPDX-License-Identifier: MIT */
/** Parts of the logger's loop that others call while they wait, and facts about the recording. */
#ifndef XHEAP_SESSION_LOGGER_LOOP_H
#define XHEAP_SESSION_LOGGER_LOOP_H

#include "session/logger/logger_state.h"

struct trace_statistics;

/** End the measurement of the clock's rate and set it in the trace, if it has lasted long enough or is urgent. */
void logger_settle_clock(struct logger *logger, bool is_urgent);

/** Take what is recorded, and answer messages, while this thread waits for another one. leaving: a process of `left`
 *  that is being detached from, which gets empty answers; NULL: none. */
void logger_serve_while(struct logger *logger, const struct target *left, const struct member *leaving);

/** Remove the targets whose processes are all detached. */
void logger_remove_let_go(struct logger *logger);

/** Take and write everything that the targets have recorded so far. Return 0 or a negative errno. */
int logger_drain_all(struct logger *logger, struct diag *diag);

/** Fill in what recording has cost so far. */
void logger_statistics(const struct logger *logger, struct trace_statistics *statistics);

/** Return the CPU time of this process in ns. */
uint64_t logger_cpu(void);

#endif
