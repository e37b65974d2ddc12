/* SPDX-License-Identifier: MIT */
/** What the command and its logger say to each other over their socket pair: one datagram, one message. */
#ifndef XHEAP_SESSION_CONTROL_H
#define XHEAP_SESSION_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/events.h"

enum control_kind {
	CONTROL_LAUNCH, /**< to the logger: pid is about to execute text */
	/** from it: held; let it execute. value: negative errno with text when it cannot be traced */
	CONTROL_LAUNCHED,
	CONTROL_EXEC_FAILED, /**< to it: it did not */
	/** from it: pid, launched, cannot be traced after all and is killed at its exec; text says why */
	CONTROL_REFUSED,
	CONTROL_STATUS, /**< to it: pid ended with wait status value */
	CONTROL_ATTACH, /**< to it: trace pid, which runs; answered by CONTROL_LAUNCHED, with the pause in text */
	CONTROL_READY,  /**< to it: that were all; it ends when they have */
	CONTROL_STOP,   /**< to it: let go of all, and end */
	/** to it: let go of pid, if value is 1 only tell whether it is recorded; answered by CONTROL_DONE */
	CONTROL_DETACH,
	CONTROL_OPTIONS, /**< to it: record as `state` says from now on (options); answered by CONTROL_DONE */
	/** to it: write what there is, if value is 1 only for a look; answered by CONTROL_DONE, text is where it can be
	    read */
	CONTROL_FLUSH,
	/** to it: answered by CONTROL_STATE, a CONTROL_TARGET for each executed image (and with value 1 a
	    CONTROL_THREAD for each of its threads that live), a CONTROL_INACTIVE for each process in which inactive
	    code stays mapped, CONTROL_DONE */
	CONTROL_QUERY,
	CONTROL_STATE,    /**< from it: state; text is the trace's path */
	CONTROL_TARGET,   /**< from it: target; text is the command line */
	CONTROL_THREAD,   /**< from it: thread; text is its name */
	CONTROL_INACTIVE, /**< from it: inactive, of a process that was detached from; text is its command line */
	CONTROL_DONE,     /**< from it: value is 0, or a negative errno with the reason in text */
	/** from it: text for the user, value is 1 for a warning, 2 for the one that recording has ended; without a
	    text: it is busy, and will answer */
	CONTROL_NOTE,
	/** from it: the trace is whole, and its index at value percent; CONTROL_STOP goes on without */
	CONTROL_INDEXING,
	CONTROL_SUMMARY /**< from it, last; text is where the trace is, or the error */
};

struct control_summary {
	/* after: calls when recording had ended, here and below */
	uint64_t events, lost, after, size_bytes, waits, wait_ns, logger_cpu_ns, peak_buffer_bytes, check_failures,
		untraced_calls, dropped;
	uint64_t index_bytes; /**< of the index that was made meanwhile; 0: there is none */
	uint32_t processes, untraced_processes;
	int32_t error;
	/** the error is that recording ended early, which a note has told to those who heard it; the trace is whole */
	uint32_t is_end;
	struct stack_ends ends; /**< of the events' stacks */
};

/** A session. */
struct control_state {
	uint64_t events, lost, after, untraced_calls, waits, wait_ns, size_bytes, buffers_written, logger_cpu_ns,
		logger_bytes, max_file_bytes, dropped;
	uint32_t targets, buffer_size, buffer_min, buffer_max, buffers_now, buffers_free;
	uint32_t options; /**< OPTION_* bits */
	uint32_t wait_limit_ms, flush_ms;
	uint32_t file_mode;      /**< enum session_file_mode */
	uint32_t clock;          /**< enum region_clock */
	uint32_t clock_choice;   /**< enum session_clock_choice: what was asked for */
	uint32_t is_real_time;   /**< it was asked for as such */
	uint64_t folded_bytes;   /**< of a long run: what is folded */
	int64_t folded_until_ns; /**< up to then */
	uint64_t folding_bytes;  /**< memory of the process that folds; 0: there is none */
	/** of all files, also of those for a moment, and what they may come to; 0: there is no limit */
	uint64_t disk_bytes, disk_limit_bytes;
	uint64_t memory_limit_bytes; /**< what logger_bytes may come to */
	uint32_t write_count;        /**< times that memory was written out */
	int64_t started_realtime_ns;
	struct stack_ends ends; /**< of the events' stacks */
};

/** An executed image and what it forked. */
struct control_target {
	uint64_t events, lost, after, untraced_calls, waits, wait_ns, resident_bytes, cpu_ns;
	uint64_t rate;     /**< events a second lately */
	uint64_t pause_ns; /**< all its threads stood so long when it was attached to; 0: it was not */
	uint32_t processes, threads;
	uint32_t is_limited;    /**< not all of its stacks, threads and heaps can be kept */
	struct stack_ends ends; /**< of the events' stacks */
};

/** Code of ours that stays mapped in a process that was detached from, since threads are in it. */
struct control_inactive {
	uint64_t bytes;
	uint32_t threads;
};

/** A thread of the target that was told last. */
struct control_thread {
	uint64_t events, rate, waits, wait_ns;
	uint32_t tid;
	struct stack_ends ends; /**< of the events' stacks */
};

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
	};
	char text[1024];
};

/** Send whole; false when the other side is gone, or reads nothing for so long. The other form is the logger's, which
    waits for a moment only. */
bool control_send_within(int socket, const struct control_message *message, int timeout_ms);
bool control_send(int socket, const struct control_message *message);

/** Receive one, waiting up to timeout_ms (-1: for ever). 1, 0 when none came, -1 when the other side is gone. */
int control_receive(int socket, struct control_message *message, int timeout_ms);

#endif
