/* SPDX-License-Identifier: MIT */
/**
 * Questions that may hang, asked through a process that can be lost.
 *
 * Whoever opens, or only looks up, a file of a stranger may wait for that stranger's server, for ever and out of reach
 * of SIGKILL. So a child asks. It answers in time, or it is killed and left behind: nobody waits for its end.
 *
 *     caller                          child (forked by losable_ask())
 *     ------                          -----
 *     losable_ask()  -- request -->   work(): may hang
 *                    <-- answer --    waits for the next request
 *     after the deadline: SIGKILL; the next request gets another child
 *
 * A child has no descriptor of the caller but those of a request. Its signals have their default actions. It ends with
 * the caller, and by itself some seconds after the deadline. It has the caller's rights: work() gives up what it can.
 *
 * Children that were lost for a key (a user's number) are counted. With LOSABLE_OF_KEY of them, requests for that key
 * fail at once until one of them has ended, so a user cannot fill the machine with them.
 */
#ifndef XHEAP_OS_LOSABLE_H
#define XHEAP_OS_LOSABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/identity.h"

enum {
	LOSABLE_BYTES = 32 << 10, /**< of a message, at most */
	LOSABLE_FDS = 16,         /**< descriptors of a message, at most */
	LOSABLE_OF_KEY = 4,       /**< children at work or lost for one key, at most */
	LOSABLE_CHILDREN = 64,    /**< for all keys together */
	LOSABLE_KEYS = 256        /**< whose time is counted apart */
};

/** A request or an answer. */
struct losable_message {
	void *bytes;
	size_t size; /**< of an answer: first the room at `bytes`, then the bytes that have come */
	unsigned fd_count;
	int fds[LOSABLE_FDS];
};

/** Answer a request, in the child. `answer->bytes` has room for LOSABLE_BYTES, of which `answer->size` are sent; they
    begin as none. The descriptors of both messages are closed afterwards. The caller may have threads: only calls that
    are safe in a signal handler are allowed, and no lock of the caller may be taken. */
typedef void losable_work(const struct losable_message *request, struct losable_message *answer);

/** A child, or a free row. */
struct losable_child {
	enum { LOSABLE_FREE, LOSABLE_IDLE, LOSABLE_BUSY, LOSABLE_LOST, LOSABLE_ENDING } state;
	struct identity identity;
	int socket;
	uint32_t key; /**< of a child that is at work or lost */
};

/** Who is asked. Initialize it with LOSABLE(). Threads may share it: each request has a child of its own. A forked
    process begins without children. */
struct losable {
	const char *name; /**< of the children's processes, 15 bytes at most */
	losable_work *work;
	bool is_once;       /**< each child answers one request */
	unsigned minute_ms; /**< how long a key is waited for in a minute; 0: any time. Keys with one place share it */
	pthread_mutex_t lock; /**< of all that follows */
	uint64_t minute;
	uint32_t waited_ms[LOSABLE_KEYS];
	pthread_cond_t changed;
	pid_t owner; /**< the process whose children these are */
	struct losable_child children[LOSABLE_CHILDREN];
};

#define LOSABLE(process_name, function, a_minute_ms) \
	{ \
		.name = (process_name), .work = (function), .minute_ms = (a_minute_ms), \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/** As LOSABLE(), of children that give up for one request what they need for the next. */
#define LOSABLE_ONCE(process_name, function, a_minute_ms) \
	{ \
		.name = (process_name), .work = (function), .is_once = true, .minute_ms = (a_minute_ms), \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

/** Ask on behalf of `key`, and wait for the answer for `deadline_ms` at most. The caller keeps the request's
    descriptors, and gets the answer's, which are closed on exec. Return 0, or a negative errno without an answer:
    -ETIMEDOUT: the child is lost, or others of the key did not come back in time; -EBUSY: too many are lost for the
    key, or its time of this minute is over; -EPIPE: the child has ended; -EMSGSIZE: the answer did not fit; else the
    child could not be started. */
int losable_ask(struct losable *losable, uint32_t key, const struct losable_message *request,
		struct losable_message *answer, unsigned deadline_ms);

/** Let the children end. None is waited for. */
void losable_end(struct losable *losable);

#endif
