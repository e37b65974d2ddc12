/* SPDX-License-Identifier: MIT */
/** A temporary directory of xheap leaks, for the copies of the memory of processes. */
#ifndef XHEAP_CLI_LEAKS_PLACE_H
#define XHEAP_CLI_LEAKS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "session/control/control.h"

/** A core, and of a process that runs, when and for how long it was paused. */
struct leaks_core {
	char *path;
	pid_t pid; /**< that runs; 0: it does not */
	struct control_core pause;
};

/** A directory for the cores, and for the trace unless it has a place of its own. Zero it to begin. */
struct leaks_place {
	char path[900], trace[960];
	struct leaks_core *cores;
	size_t count, capacity;
};

/** Make the directory. CLI_OK, or CLI_FAILED after a message. */
int leaks_place_make(struct leaks_place *place);

/** Add a core that lies anywhere. */
void leaks_place_add(struct leaks_place *place, const char *path);

/** Find the cores that were written there, in the order of their numbers. */
void leaks_place_list(struct leaks_place *place);

/** Have the logger of the session write the core of a process, or with pid 0 of the first process of each of its
    images. may_stop: they may be paused for long. CLI_OK, or CLI_FAILED after a message. */
int leaks_place_look(struct leaks_place *place, const char *session, pid_t pid, bool may_stop);

/** Remove the directory with all that is in it. What is open stays readable. */
void leaks_place_remove(struct leaks_place *place);

/** Free the names of the cores. */
void leaks_place_fini(struct leaks_place *place);

#endif
