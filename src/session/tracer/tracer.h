/* SPDX-License-Identifier: MIT */
/**
 * The tracer stops processes at the exec of an image. For each one a thread traces the process until the exec is done,
 * injects the recorder, and detaches.
 *
 * The logger's main thread calls all functions below. They may wait for a lock.
 */
#ifndef XHEAP_SESSION_TRACER_H
#define XHEAP_SESSION_TRACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "inject/inject.h"
#include "os/identity.h"
#include "region/region.h"
#include "session/control/control.h"
#include "session/control/options.h"
#include "session/control/session_clock.h"
#include "session/control/watch.h"
#include "session/directory/region_files.h"
#include "session/tracer/hook_cache.h"

struct tracer;

/** A process to stop at its exec, or to attach to. */
struct tracer_task {
	pid_t pid, tid;
	/** of `pid`, taken before anything else was read of it; the tracer's once tracer_start() has returned true.
	    Empty for an unreaped child and for a process that the user named */
	struct identity identity;
	int directory; /**< descriptor, in the process, that `path` is relative to; AT_FDCWD */
	char path[1024];
	uint32_t parent, exec_generation; /**< ids for the trace */
	/** answered once the tracer thread has seized the caller with ptrace, or cannot; NULL for the command itself */
	struct region_message *message;
	uint32_t message_tid;    /**< the thread that posted the message */
	const char *region_path; /**< of the region of the present image, which ends at the exec */
	uint64_t region_inode;
	int control; /**< socket for answers about the command or an attach; closed afterwards */
	bool is_launch;
	bool is_spared; /**< of a launch: it runs untraced if it must, as process 1 may not be killed */
	bool is_image;  /**< `image` is set; answers go to `control`, and the process runs untraced if it must */
	struct control_image image;
	bool may_gain;  /**< it is recorded although its exec gives it privileges; so are the images that follow it */
	bool is_attach; /**< the process runs and is to be recorded from now on; the answer goes to `control` */
	/** write a core of the process to `path`. It waits in its exit until the message is answered; without one, the
	    answer goes to `control`, by whoever takes the result. may_stop: see inject/process_core.h */
	bool is_core, may_stop;
	struct inject_span spans[INJECT_SPANS_MAX]; /**< memory that is left out of the core */
	uint32_t span_count;
};

enum tracer_kind {
	TRACER_INJECTED,
	TRACER_UNTRACED,
	TRACER_FAILED /**< the exec failed, or the command was killed */,
	TRACER_CORE /**< `diag` says why there is no core; "": there is one */,
	TRACER_WALKED /**< follows TRACER_INJECTED for an attach: `walk` is set */
};

/** The result of a task. region, inject and walk are the taker's. */
struct tracer_result {
	enum tracer_kind kind;
	pid_t pid;
	bool has_executed;
	uint64_t start_ticks; /**< of the new image */
	/** of the image that was injected into, read during the stop: when the result is taken, the process may have
	    another image */
	uint64_t stack_start;
	uint32_t parent, exec_generation, number;
	struct region_message *message; /**< the message that announced the exec, */
	uint32_t message_tid;           /**< and the thread that posted it */
	bool may_gain;                  /**< of the task */
	struct region region;
	struct inject inject;
	uint64_t pause_ns;    /**< of an attach, or a core: how long all threads were paused */
	uint64_t core_ticks;  /**< of a core: when they were */
	int control;          /**< of a core that was asked for: the socket of the task, to be closed; -1: it was not */
	struct heapwalk walk; /**< freed by the taker */
	char region_path[REGION_FILE_PATH_BYTES], path[1024];
	struct diag diag;
};

/** Make a tracer. The arguments stay the caller's; doorbell is rung with each result. NULL without memory. */
struct tracer *tracer_new(const struct session_options *options, const struct session_directory *directory,
			  struct hook_cache *hooks, const struct session_clock *clock, struct doorbell *doorbell);

/** Tasks at a time: of all processes, of those of one user other than the logger's, and of those with one region. An
    announced exec may be put off for ever. */
enum { TRACER_TASK_MAX = 1024, TRACER_USER_TASK_MAX = 512, TRACER_REGION_TASK_MAX = 256 };

/** Begin a task. Return false if it cannot begin, as with too many tasks; then the caller lets the process continue. */
bool tracer_start(struct tracer *tracer, const struct tracer_task *task);

/** Cancel the exec that `message` announced (NULL: that of the process `command`), since it failed. Return when no
    thread holds the process any more. */
void tracer_cancel(struct tracer *tracer, const struct region_message *message, pid_t command);

/** Take the next result into *result. Return false if none is ready. */
bool tracer_take(struct tracer *tracer, struct tracer_result *result);

/** Return whether a task is under way or a result waits. */
bool tracer_is_busy(struct tracer *tracer);

/** Return whether a task or a result refers to the region's memory: to a message in it or, for an attach, to any
    region. */
bool tracer_uses(struct tracer *tracer, const struct region *region);

/** Return whether the thread is traced until it executes; until then it announces nothing else. */
bool tracer_has_thread(struct tracer *tracer, pid_t tid);

/** Return whether a task for the process is under way, or a result about it waits. */
bool tracer_has(struct tracer *tracer, pid_t pid);

/** End the walks over heaps of attached processes because the recording ends: each stops at most a second after it
    began. */
void tracer_end_walks(struct tracer *tracer);

/** Cancel all announced execs that have not happened yet because the recording ends. To be repeated until no task is
    under way. */
void tracer_give_up(struct tracer *tracer);

/** Return whether an attach is under way: until the blocks from before it are known and taken. */
bool tracer_is_attaching(struct tracer *tracer);

#endif
