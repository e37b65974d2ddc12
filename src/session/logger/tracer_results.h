/* SPDX-License-Identifier: MIT */
/** The results of tracers. */
#ifndef XHEAP_SESSION_TRACER_RESULTS_H
#define XHEAP_SESSION_TRACER_RESULTS_H

#include "session/logger/logger_state.h"

/** Handle the results of the tracer. Return true if there was one. */
bool logger_take_results(struct logger *logger);

/** End the image that `pid` was, at the ticks at which its next image begins. */
void logger_image_over(struct logger *logger, pid_t pid, uint64_t ticks);

#endif
