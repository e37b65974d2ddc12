/* SPDX-License-Identifier: MIT */
/** The start of a registered image, as the tracer sees it: a thread that a watcher holds in its exec. */
#ifndef XHEAP_SESSION_IMAGE_START_H
#define XHEAP_SESSION_IMAGE_START_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "session/control/control.h"

/** Return whether the thread executes already, and only opens a further file: the interpreter of a script. */
bool image_is_in_exec(pid_t tid);

/** Return whether a logger traces the thread already, at an exec of which a recorded process has told it. */
bool image_is_followed(pid_t tid);

/** A stop of a traced thread. */
struct image_stop {
	pid_t pid;  /**< the thread, or at an exec stop its process; 0: it has ended */
	int signal; /**< to deliver with the detach; 0: none */
};

/** Wait for the first stop of the one thread that this thread traces. Return CONTROL_OUTCOME_TRACED at the exec stop;
    at any other stop the exec has failed, CONTROL_OUTCOME_EXEC_FAILED. The thread stays stopped. A signal ends the wait
    when *is_cancelled is set: then the exec counts as failed, and the thread is not stopped. */
enum control_outcome image_wait_for_exec(struct image_stop *stop, const bool *is_cancelled);

/** Return CONTROL_OUTCOME_TRACED if the option selects the process, which is at its exec stop; else
    CONTROL_OUTCOME_UNSELECTED. Count the start if all but its number matches. */
enum control_outcome image_select(const struct control_image *image, pid_t pid);

/** Directories of image options. */
enum image_directory {
	IMAGE_DIRECTORY_OPTIONS, /**< files of options */
	IMAGE_DIRECTORY_RUN,     /**< the keeper's files, which a boot clears */
	IMAGE_DIRECTORY_TRACES,
	IMAGE_DIRECTORY_COUNT
};

/** IMAGE_DIRECTORY_RUN, as it usually is. */
#define IMAGE_RUN_USUAL "/run/xheap-images"

/** Write the directory's path, behind trusted_root(). */
void image_directory(enum image_directory directory, char *path, size_t size);

/** Name and rows of the file of counts in IMAGE_DIRECTORY_RUN: numbers of 8 bytes, of matching starts since the
    boot. */
#define IMAGE_COUNTER_FILE "counts"
enum { IMAGE_COUNTER_MAX = 4096 };

#endif
