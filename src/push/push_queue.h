/* SPDX-License-Identifier: MIT */
/**
 * Profiles that wait to be pushed: files of a directory, the oldest first, up to a limit. Those of an earlier process
 * are there again. A file `status` says how it goes (session/directory/fields.h has its form):
 *
 *     pushed=12, waiting=1, waiting_bytes=5112, dropped=0, error=..., place=..., logger=4711
 */
#ifndef XHEAP_PUSH_QUEUE_H
#define XHEAP_PUSH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/diag.h"
#include "base/sink.h"

#define PUSH_QUEUE_BYTES (UINT64_C(64) << 20)
enum { PUSH_ITEM_NAME_BYTES = 40 };

/** What waits: a file, named by its number. It has a line with the address, and the profile. */
struct push_item {
	uint64_t number, bytes;
};

/** What became of profiles. */
struct push_counts {
	uint64_t pushed, waiting, waiting_bytes, dropped;
	uint64_t logger;  /**< process id of the session's: which session this is about */
	char error[200];  /**< of the last trouble; "": none since the last push */
	char place[1024]; /**< as it was typed */
};

struct push_queue {
	char path[CACHE_PATH_BYTES];
	int directory, lock; /**< descriptors; -1: closed */
	uint64_t limit_bytes;
	struct push_item *items; /**< oldest first */
	size_t count, capacity;
	uint64_t next_number;
	struct push_counts counts;
};

/** Open the queue in the directory, which is made if it is missing, and take what waits there. One process at a time
    has it; wait_ms: how long to wait for another one to leave it. Return 0, or a negative errno with the reason in
    `diag`. End it with push_queue_close() in any case. */
int push_queue_open(struct push_queue *queue, const char *path, uint64_t limit_bytes, uint64_t wait_ms,
		    struct diag *diag);

/** Write the name of the file that the next profile gets. */
void push_queue_name_next(const struct push_queue *queue, char name[PUSH_ITEM_NAME_BYTES]);

/** Add a profile for this address: write(context, out). The oldest are dropped, and counted, where the limit or the
    disk has no room for it. Return 0, or a negative errno with the reason in `diag`: then this one is dropped. */
int push_queue_add(struct push_queue *queue, const char *url, void (*write)(void *context, struct sink *out),
		   void *context, struct diag *diag);

/** Return the oldest profile, a file that is read from where the profile begins, and set *url. The caller closes the
    one and frees the other. -1: nothing waits. */
int push_queue_first(struct push_queue *queue, char **url);

/** Remove that profile: it was pushed, or the place has refused it. */
void push_queue_done(struct push_queue *queue, bool is_refused);

/** Write the status. */
void push_queue_tell(struct push_queue *queue);

/** Note a trouble ("": there is none any more), and write the status. */
void push_queue_note(struct push_queue *queue, const char *error);

/** Read the status in a queue's directory. Return false if there is none. */
bool push_status_read(const char *path, struct push_counts *counts);

/** Set `path` to the directory of a session's queue in the state directory. Return 0, or a negative errno with the
    reason in `diag`. */
int push_queue_path(char path[CACHE_PATH_BYTES], const char *session, bool makes, struct diag *diag);

/** Set `path` to the trace of a session that only pushes: `xheap start -o none`. Return as push_queue_path(). */
int push_trace_path(char path[CACHE_PATH_BYTES], const char *session, bool makes, struct diag *diag);

/** Return whether the path is that trace: its last pusher removes it. */
bool push_trace_is_own(const char *session, const char *path);

/** Close it; what waits stays. */
void push_queue_close(struct push_queue *queue);

#endif
