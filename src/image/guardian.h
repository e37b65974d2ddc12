/* SPDX-License-Identifier: MIT */
/** The guardian: starts the watcher, kills it when it gives no sign of life, and starts another one. It never holds the
    watcher's descriptor, so no exec waits for it. */
#ifndef XHEAP_IMAGE_GUARDIAN_H
#define XHEAP_IMAGE_GUARDIAN_H

#include "image/watcher.h"

/** Guard watchers until the keeper's socket closes. The keeper gets each new watcher's socket by it. life: shared
    memory. deadline_ms: of the watchers. */
_Noreturn void guardian_run(int keeper, struct watch_life *life, uint32_t deadline_ms);

#endif
