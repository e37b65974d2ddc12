/* SPDX-License-Identifier: MIT */
/** The loggers of registered images: those started ahead of need, sessions that run, and their traces. */
#ifndef XHEAP_IMAGE_KEEPER_LOGGERS_H
#define XHEAP_IMAGE_KEEPER_LOGGERS_H

#include <stdbool.h>
#include <stdint.h>

struct keeper;

/** Start processes that wait for starts, as many as the options in force may need. */
void keeper_add_spares(struct keeper *keeper);
/** End the spares: they know the options as they were. */
void keeper_drop_spares(struct keeper *keeper);
/** Note that a spare is a logger now. */
void keeper_spare_taken(struct keeper *keeper, uint32_t id);
/** Find sessions that have begun or ended; ask new ones whether they take registered images. */
void keeper_scan_sessions(struct keeper *keeper);
/** Take the answers of the sessions that were asked, and pass those that take starts to the watcher. */
void keeper_take_sessions(struct keeper *keeper);
/** Return whether a session has not answered yet. */
bool keeper_asks_sessions(const struct keeper *keeper);
/** Note in the status how many sessions take starts, beside the images' own. */
void keeper_count_sessions(struct keeper *keeper);
/** Consider the sessions again: options have changed. */
void keeper_review_sessions(struct keeper *keeper);
/** Forget that sessions were passed to the watcher, which has ended. */
void keeper_forget_sessions(struct keeper *keeper);
/** Forget a session that has ended. */
void keeper_session_gone(struct keeper *keeper, uint32_t id);
/** End the sessions of images. */
void keeper_stop_sessions(struct keeper *keeper);
/** Remove the oldest traces of the images' own sessions that exceed the limits. */
void keeper_trim_traces(const struct keeper *keeper);

#endif
