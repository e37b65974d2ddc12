/* SPDX-License-Identifier: MIT */
/** Memory of the watcher, the guardian and the keeper: the watcher's signs of life, and the counts of starts. A file in
    IMAGE_DIRECTORY_RUN holds it, so it outlives each of them. No count is lost if the keeper is slow, or if a message
    does not fit. */
#ifndef XHEAP_IMAGE_WATCH_LIFE_H
#define XHEAP_IMAGE_WATCH_LIFE_H

#include <stdint.h>

#include "base/diag.h"
#include "image/image_status.h"
#include "session/control/control.h"
#include "session/tracer/image_start.h"

struct watch_life {
	uint64_t beats;   /**< the watcher raises it at least every WATCHER_BEAT_MS */
	int64_t beat_ns;  /**< time of the last one, since the epoch */
	uint64_t changes; /**< how many starts were counted */
	struct {
		uint64_t outcomes[CONTROL_OUTCOME_COUNT], shared; /**< as in struct image_count */
	} counts[IMAGE_COUNTER_MAX];                              /**< by the option's number */
};

/** Map the memory. It begins with the counts of `status` if its file is new, or of another version. Return 0 or a
    negative errno. */
int watch_life_open(struct watch_life **life, const struct image_status *status, struct diag *diag);

/** Count a start. is_shared: it is recorded into the common trace. */
void watch_life_count(struct watch_life *life, uint32_t option, enum control_outcome outcome, bool is_shared);

/** Copy the counts into `status`. */
void watch_life_take(const struct watch_life *life, struct image_status *status);

#endif
