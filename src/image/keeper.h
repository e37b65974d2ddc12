/* SPDX-License-Identifier: MIT */
/** The keeper: reads image options, follows the mount table, starts loggers ahead of need, keeps counts, and passes
    open descriptors to the watcher. */
#ifndef XHEAP_IMAGE_KEEPER_H
#define XHEAP_IMAGE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

struct keeper_options {
	const char *below;    /**< watch only file systems mounted here or below; NULL: all */
	uint32_t deadline_ms; /**< time that a start may wait for its logger */
	/** It begins before process 1. Directories may be missing or read-only; a later keeper follows it. */
	bool is_early;
	/** Receive a line for the user. */
	void (*say)(const char *text);
};

/** Keep until SIGTERM or SIGINT. If an early keeper runs, only follow it: pass SIGHUP and SIGTERM on to it, and take
    its place if it ends otherwise. Return 0, or a negative errno with the reason. */
int keeper_run(const struct keeper_options *options, struct diag *diag);

#endif
