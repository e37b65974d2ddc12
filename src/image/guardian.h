/* SPDX-License-Identifier: MIT */
/** The guardian: starts the watcher, and another one when that gives no sign of life. It has a descriptor of each of
    the watcher's groups: when a watcher ends, or cannot be ended, the guardian answers what the watcher has not
    answered. It reads no event itself, and waits for no other process. */
#ifndef XHEAP_IMAGE_GUARDIAN_H
#define XHEAP_IMAGE_GUARDIAN_H

#include "image/watcher.h"

/** Guard watchers until the keeper's socket closes. The keeper gets each new watcher's socket by it. life: shared
    memory. deadline_ms: of the watchers. */
_Noreturn void guardian_run(int keeper, struct watch_life *life, uint32_t deadline_ms);

#endif
