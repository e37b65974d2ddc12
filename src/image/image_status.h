/* SPDX-License-Identifier: MIT */
/** What the keeper knows: counts of starts since the boot, and the times without a watcher. A file in
    IMAGE_DIRECTORY_RUN that the keeper writes and commands read. */
#ifndef XHEAP_IMAGE_IMAGE_STATUS_H
#define XHEAP_IMAGE_IMAGE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "session/control/control.h"

enum { IMAGE_INTERVAL_MAX = 128, IMAGE_REASON_BYTES = 256, IMAGE_UNWATCHED_MAX = 64, IMAGE_PLACE_BYTES = 256 };

/** The starts of an image. */
struct image_count {
	char image[1024];
	uint64_t outcomes[CONTROL_OUTCOME_COUNT];
	uint64_t shared;                   /**< of an option with %p: recorded into the common trace */
	int64_t last_ns;                   /**< time of the last start; 0: none */
	char last_why[IMAGE_REASON_BYTES]; /**< why the last untraced start was not traced; "": there is none */
};

/** A time without a watcher, in ns since the epoch. */
struct image_interval {
	int64_t from_ns, to_ns; /**< to_ns 0: it lasts */
	uint32_t end;           /**< enum watch_end: why the watcher ended */
};

/** A file system on which no start of a NAME is seen. */
struct image_unwatched {
	uint64_t namespace; /**< the mount namespace, by its inode; 0: that of the keeper */
	int32_t pid;        /**< a process there; 0: of the keeper's */
	char place[IMAGE_PLACE_BYTES], why[96]; /**< "": known to root only */
};

struct image_status {
	int32_t keeper, watcher; /**< process ids; 0: none */
	bool is_in_force;        /**< the watcher has its marks */
	bool is_early;           /**< the keeper began before process 1 */
	uint64_t in_force_ns;    /**< when the options in force were read, in ns of the monotonic clock; 0: none is */
	uint64_t refused_marks, overflows, interval_count; /**< interval_count: of all; the newest ones are kept */
	uint64_t namespaces;      /**< other mount namespaces whose file systems are watched, as of the last search */
	uint64_t sessions;        /**< sessions that take starts, beside the images' own */
	uint64_t unwatched_count; /**< of all; the first ones are kept */
	struct image_unwatched unwatched[IMAGE_UNWATCHED_MAX];
	struct image_interval intervals[IMAGE_INTERVAL_MAX];
	struct image_count *counts;
	size_t count, capacity;
};

/** Return the row of the image; make it if it is not there. */
struct image_count *image_status_row(struct image_status *status, const char *image);

/** Return how many matching starts of the image were counted since the boot; 0 if --first and --every did not ask. */
uint64_t image_status_counted(const struct image_status *status, const char *image);

/** Write the file. Return 0 or a negative errno. */
int image_status_write(const struct image_status *status, struct diag *diag);

/** Read the file into *status; all zero if there is none. A user other than root learns no places and no reasons. */
void image_status_read(struct image_status *status);
void image_status_fini(struct image_status *status);

/** Begin an interval without a watcher, unless one lasts, or end the one that lasts. */
void image_status_interval(struct image_status *status, bool is_watching, uint32_t end, int64_t now_ns);

/** Wait until the options are in force as their files are now, and as the sessions are now. Return 0; -ESRCH: nobody
    watches; -ETIMEDOUT. */
int image_status_await(uint64_t limit_ns, struct diag *diag);

/** Forget the file systems that are not watched: those of the keeper's namespace, or of all others. */
void image_status_forget_unwatched(struct image_status *status, bool is_other);

/** Note a file system that is not watched, unless it was noted. */
void image_status_add_unwatched(struct image_status *status, const struct image_unwatched *unwatched);

/** Return whether the keeper of the file runs. */
bool image_status_is_kept(const struct image_status *status);

#endif
