/* SPDX-License-Identifier: MIT */
/** The messages between controllers and a session's logger, over a socket of whole datagrams: one datagram is one
    message. */
#ifndef XHEAP_SESSION_CONTROL_H
#define XHEAP_SESSION_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/events.h"
#include "session/control/session_numbers.h"

enum control_kind {
	/** to the logger: `pid` is about to execute `text`. With `image` set (value 1), of a watcher: the thread `pid`
	    waits in the exec of a registered image. Value 2: `pid` is about to become the real init, and runs untraced
	    rather than being killed */
	CONTROL_LAUNCH,
	/** from the logger: `pid` is stopped, let it execute. value: 0, or a negative errno with the reason in
	    `text` */
	CONTROL_LAUNCHED,
	CONTROL_EXEC_FAILED, /**< to the logger: the announced exec has failed */
	/** from the logger: `pid`, launched, cannot be traced after all and is killed at its exec; `text` says why */
	CONTROL_REFUSED,
	CONTROL_STATUS, /**< to the logger: `pid` ended; value: its wait status */
	/** to the logger: record `pid`, which runs; the answer is CONTROL_LAUNCHED, with the pause in `text` */
	CONTROL_ATTACH,
	CONTROL_READY, /**< to the logger: the list of targets is complete; the logger ends when they have ended */
	CONTROL_STOP,  /**< to the logger: detach from all targets, and end */
	/** to the logger: detach from `pid`; value 1: say only whether `pid` is recorded; the answer is CONTROL_DONE */
	CONTROL_DETACH,
	CONTROL_OPTIONS, /**< to the logger: record by the options in `state` from now on; the answer is CONTROL_DONE */
	/** to the logger: write what is recorded; value 1: write a snapshot only. The answer is CONTROL_DONE, its
	    `text` the path to read */
	CONTROL_FLUSH,
	/** to the logger: pause `pid`, for long only if `value` is 1, and write a core of it to the file `text`, which
	    does not exist yet. The answer is CONTROL_DONE with `core` set */
	CONTROL_CORE,
	/** to the logger: describe the session. The answers are CONTROL_STATE, a CONTROL_TARGET for each executed
	    image, a CONTROL_INACTIVE for each process in which inactive code stays mapped, and CONTROL_DONE. With value
	    1, a CONTROL_THREAD for each live thread follows its CONTROL_TARGET */
	CONTROL_QUERY,
	CONTROL_STATE,    /**< from the logger: `state` is set; `text` is the trace's path */
	CONTROL_TARGET,   /**< from the logger: `target` is set; `text` is the command line */
	CONTROL_THREAD,   /**< from the logger: `thread` is set; `text` is its name */
	CONTROL_INACTIVE, /**< from the logger: `inactive` is set, of a detached process; `text` is its command line */
	CONTROL_DONE,     /**< from the logger: value is 0, or a negative errno with the reason in `text` */
	/** from the logger: `text` is for the user; value 1: a warning, 2: the message that recording has ended. An
	    empty `text` only says that the logger is busy and will answer */
	CONTROL_NOTE,
	/** from the logger: the trace is whole, its index is done by value percent; CONTROL_STOP ends the wait for the
	    index */
	CONTROL_INDEXING,
	/** from the logger to a watcher: the end of a launch with `image`. value: enum control_outcome; `pid`: the
	    process; `text`: the reason if it runs untraced */
	CONTROL_OUTCOME,
	CONTROL_SUMMARY, /**< from the logger, the last message; `text` is the path of the trace, or the error */
	CONTROL_ANNOUNCE /**< from a user's logger to root's keeper: the session `text` takes registered images */
};

/** X(id, name): what became of the start of a registered image. FOLLOWED: by a process that a session records already,
    which goes on with the new image. */
#define CONTROL_OUTCOMES(X) \
	X(TRACED, "traced") \
	X(REFUSED, "cannot be traced") \
	X(UNSELECTED, "not selected") \
	X(EXEC_FAILED, "exec failed") \
	X(FOLLOWED, "followed") \
	X(SCRIPT, "of scripts") \
	X(PRIVILEGED, "privileged") \
	X(DOMAIN, "changes domain") \
	X(LATE, "deadline exceeded") \
	X(CROWDED, "too many at once") \
	X(NO_LOGGER, "no logger") \
	X(LOGGER_GONE, "logger ended") \
	X(UNSEEN, "no process id here")

enum control_outcome {
#define X(id, name) CONTROL_OUTCOME_##id,
	CONTROL_OUTCOMES(X)
#undef X
		CONTROL_OUTCOME_COUNT
};

/** Return whether the outcome means that a start that should be traced is not. */
static inline bool control_outcome_is_untraced(enum control_outcome outcome)
{
	return outcome != CONTROL_OUTCOME_TRACED && outcome != CONTROL_OUTCOME_UNSELECTED &&
	       outcome != CONTROL_OUTCOME_EXEC_FAILED && outcome != CONTROL_OUTCOME_FOLLOWED &&
	       outcome != CONTROL_OUTCOME_SCRIPT;
}

enum { CONTROL_PATTERN_BYTES = 128 };

/** The start of a registered image: which starts its option selects. */
struct control_image {
	uint32_t token;  /**< the watcher's number of the start, repeated in each answer */
	uint32_t option; /**< the keeper's number of the option */
	uint32_t has_user, user;
	uint32_t has_owner, owner; /**< of the executed program; only checked of the interpreter of a script */
	uint32_t counter;          /**< row of the counts of matching starts; UINT32_MAX: none is needed */
	uint32_t share;            /**< whose starts the session takes; 0: those of root, or of all */
	uint32_t is_last;          /**< 1: the session ends with this process */
	uint64_t first, every;     /**< select the first so many starts, and each so-manieth; 0: all */
	/** patterns of fnmatch(): of the whole command line, of a cgroup's path or its last part; "": all */
	char arguments[CONTROL_PATTERN_BYTES], cgroup[CONTROL_PATTERN_BYTES];
	char name[256];             /**< the file name by which it must be executed; "": any */
	uint32_t has_scripts;       /**< 1: scripts that the image interprets are starts of it */
	uint32_t checks_domain;     /**< 1: leave the start alone if SELinux gives it another domain */
	uint32_t checks_privileges; /**< 1: leave the start alone if its exec gives it privileges */
	char label[256];            /**< SELinux's context of the file; "": it has none */
};

/** How a recording ended before its session did. */
enum control_end {
	CONTROL_END_NONE,
	/** the error is that recording ended early, which a CONTROL_NOTE has already reported; the trace is whole */
	CONTROL_END_EARLY,
	CONTROL_END_AT_LIMIT, /**< the same, at the greatest size that the user gave */
};

/** The totals of a session that has ended. */
struct control_summary {
	/* after: calls made after recording had ended, here and below. Units are in the names; `waits` counts calls
	   that waited for a buffer */
	uint64_t events, lost, after, size_bytes, waits, wait_ns, logger_cpu_ns, peak_buffer_bytes, check_failures,
		untraced_calls, dropped;
	/** of the events, without failed calls and calls in flight, by enum event_kind */
	uint64_t kinds[EVENT_KIND_COUNT];
	uint64_t index_bytes; /**< of the index that was made during the recording; 0: none was made */
	uint32_t processes, untraced_processes;
	int32_t error;
	uint32_t end;           /**< enum control_end */
	struct stack_ends ends; /**< of the events' stacks */
};

/** The state of a session. */
struct control_state {
#define X(type, name, kind, key, known, help) type name;
	SESSION_NUMBERS(X, X)
#undef X
	uint32_t options; /**< OPTION_* bits */
	uint32_t wait_limit_ms;
	uint32_t file_mode;    /**< enum session_file_mode */
	uint32_t clock;        /**< enum region_clock */
	uint32_t clock_choice; /**< enum session_clock_choice that the options ask for */
	uint32_t takes_images; /**< 1: it records starts of registered images */
	uint32_t is_real_time; /**< 1: the user asked for the real-time mode, with a short flush_timer_ms */
	uint32_t index;        /**< enum session_index */
	int64_t started_realtime_ns;
	/** of the events, those that neither failed nor were under way at their threads' ends */
	uint64_t kind_count[EVENT_KIND_COUNT];
	/** everything up to this time, ns of the trace, is in the first whole_bytes of the file; 0: unknown, or the
	    trace is not one growing file */
	int64_t whole_until_ns;
	uint64_t whole_bytes;
};

/** An executed image and the processes forked from it. */
struct control_target {
	uint64_t events, lost_events, calls_after_end, untraced_calls, waits, wait_ns, resident_bytes, cpu_ns;
	uint64_t rate; /**< events per second, lately */
	/** how long all its threads were paused by the attach; 0: started by xheap, not attached to */
	uint64_t pause_ns;
	uint32_t processes, threads;
	uint32_t is_limited;    /**< 1: some of its stacks, threads or heaps exceed a limit and are not kept */
	uint32_t is_searching;  /**< 1: its blocks from before the attach are not all known yet */
	struct stack_ends ends; /**< of the events' stacks */
};

/** Code of the recorder that stays mapped in a detached process, since threads are in it. */
struct control_inactive {
	uint64_t bytes;
	uint32_t threads;
};

/** A core that was written. */
struct control_core {
	int64_t at_ns;     /**< of the trace: when all threads stood */
	uint64_t pause_ns; /**< how long they stood */
};

/** A thread of the target in the last CONTROL_TARGET. */
struct control_thread {
	uint64_t events, rate, waits, wait_ns;
	uint32_t tid;
	struct stack_ends ends; /**< of the events' stacks */
};

/** One datagram. `kind` is an enum control_kind and says which member of the union is set; `text` ends with a NUL. */
struct control_message {
	uint32_t kind;
	int32_t pid;
	int64_t value;
	union {
		struct control_summary summary;
		struct control_state state;
		struct control_target target;
		struct control_thread thread;
		struct control_inactive inactive;
		struct control_core core;
		struct control_image image;
	};
	char text[1024];
};

/** Send the message whole, waiting up to timeout_ms for room. Return false if the other side is gone or reads too
    slowly. */
bool control_send_within(int socket, const struct control_message *message, int timeout_ms);
/** The logger's patience with a slow reader is short: targets may be waiting for the logger. */
enum { CONTROL_PATIENCE_MS = 100 };
/** As control_send_within(), with that patience. */
bool control_send(int socket, const struct control_message *message);

/** Receive one message, waiting up to timeout_ms (-1: without limit). Return 1, 0 if none came, -1 if the other side is
    gone. */
int control_receive(int socket, struct control_message *message, int timeout_ms);

#endif
