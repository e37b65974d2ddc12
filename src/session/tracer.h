/* SPDX-License-Identifier: MIT */
/**
 * Holding processes that are about to execute an image: each by a thread that traces it until the exec is done,
 * injects, and lets go.
 */
#ifndef XHEAP_SESSION_TRACER_H
#define XHEAP_SESSION_TRACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/inject.h"
#include "os/identity.h"
#include "region/region.h"
#include "session/hook_cache.h"
#include "session/options.h"
#include "session/region_files.h"
#include "session/session_clock.h"
#include "session/watch.h"

struct tracer;

struct tracer_task {
	pid_t pid, tid;
	/** of pid, taken before anything was found out about it, and dropped then; nobody's: it is a child that was not
	    waited for, or the user's word */
	struct identity identity;
	int directory; /**< descriptor that path is relative to, in the process; AT_FDCWD */
	char path[1024];
	uint32_t parent, exec_generation; /**< for the trace */
	struct region_message *message;   /**< to answer when it is held; NULL for the command itself */
	uint32_t message_tid;             /**< whose it is */
	const char *region_path;          /**< of the image that it is: gone with it */
	uint64_t region_inode;
	int control; /**< a socket for what there is to say about the command itself; closed then */
	bool is_launch;
	bool is_attach; /**< it runs already, and is traced from now on: the answer goes to control */
};

enum tracer_kind {
	TRACER_INJECTED,
	TRACER_UNTRACED,
	TRACER_FAILED /**< there was no exec, or the command is killed */,
	TRACER_WALKED /**< of one that was injected: walk is set */
};

struct tracer_result {
	enum tracer_kind kind;
	pid_t pid;
	bool has_executed;
	uint64_t start_ticks; /**< of the new image */
	/** of one that was injected into, as long as it stood: when the result is taken, it may be another image */
	uint64_t stack_start;
	uint32_t parent, exec_generation, number;
	struct region_message *message; /**< by which the exec was announced, */
	uint32_t message_tid;           /**< and by whom */
	struct region region;
	struct inject inject;
	uint64_t pause_ns;    /**< of one that was attached to: all its threads stood so long */
	struct heapwalk walk; /**< the taker's to free */
	char region_path[REGION_FILE_PATH_BYTES], path[1024];
	struct diag diag;
};

/** doorbell: rung with each result. */
struct tracer *tracer_new(const struct session_options *options, const struct session_directory *directory,
			  struct hook_cache *hooks, const struct session_clock *clock, struct doorbell *doorbell);

/** Begin; false when it cannot (the caller lets the process go on). */
bool tracer_start(struct tracer *tracer, const struct tracer_task *task);

/** The exec that message (or for the command, NULL, its process) announced has failed: let go. Returns when nothing
    holds it any more. */
void tracer_cancel(struct tracer *tracer, const struct region_message *message, pid_t command);

/** The next result, false when there is none now. */
bool tracer_take(struct tracer *tracer, struct tracer_result *result);

/** Whether something is held or a result waits. */
bool tracer_is_busy(struct tracer *tracer);

/** Whether something that is held, or a result, refers to memory of the region: to a message in it, or, of one that is
    attached to, to all. */
bool tracer_uses(struct tracer *tracer, const struct region *region);

/** Whether the thread is held until it executes: it announces nothing else meanwhile. */
bool tracer_has_thread(struct tracer *tracer, pid_t tid);

/** Whether the process is held, or a result about it waits. */
bool tracer_has(struct tracer *tracer, pid_t pid);

/** The recording ends: who still reads what a process had before goes on for a second at most, from when it began. */
void tracer_end_walks(struct tracer *tracer);

/** The recording ends: let go of all who have announced an exec and not made it yet. To be repeated until nothing is
    held. */
void tracer_give_up(struct tracer *tracer);

/** Whether a process is being attached to: until what it had before is known, and was taken. */
bool tracer_is_attaching(struct tracer *tracer);

#endif
