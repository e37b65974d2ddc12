/* SPDX-License-Identifier: MIT */
/**
 * The crowd: all threads of a running process, and the system calls that one of them makes for the logger. One thread
 * of the logger seizes, stops and resumes them. Only that tracing thread may call the functions below.
 */
#ifndef XHEAP_INJECT_CROWD_H
#define XHEAP_INJECT_CROWD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/diag.h"
#include "inject/remote.h"
#include "inject/seize.h"

/** A thread of the crowd. */
struct stand {
	pid_t tid;
	bool is_stopped, is_group_stop;
	bool is_gone;    /**< it has ended, or is not traced any more */
	bool is_outside; /**< detaching: proved to be outside of the recorder's code, never to return to it */
	bool is_awaited; /**< detaching: it is to stop, for a check of where it is */
	bool is_refused; /**< the kernel does not make its calls, as it showed: no other one is asked of it now */
	bool is_late;    /**< it had no processor to stop on, in time */
	uint64_t ran_ns; /**< of a late thread: its processor time when it was found to be late */
	int signal;      /**< a signal that it was about to receive; 0: none */
	struct user_regs_struct registers; /**< valid while it is stopped by crowd_stop() or stand_interrupt() */
};

/** The threads of a process that the calling thread traces. Set pid, and wait if it is shared; zero the rest. */
struct crowd {
	pid_t pid;
	struct stand *stands;
	uint32_t count, capacity;
	bool has_moved;          /**< some thread was moved into the copy of an entry */
	struct seize_wait *wait; /**< of seize_thread() */
};

#define CROWD_LEAVE_LIMIT_NS UINT64_C(10000000000)
enum { CROWD_TURN_LIMIT_S = 30 };

/** The scheduling of a thread before it was raised above other work, while threads are paused. */
struct urgency {
	int nice, policy, priority;
};
/** Raise the calling thread's priority as far as is allowed. Return what it was. */
struct urgency urgency_begin(void);
/** Restore the priority. */
void urgency_end(const struct urgency *before);

/** Seize all threads of the process; they continue to run. Return 0 or a negative errno. */
int crowd_seize(struct crowd *crowd, struct diag *diag);

/** Stop all threads, also new ones, and read their registers. All run on while a thread waits for a processor to stop
    on, for at most CROWD_TURN_LIMIT_S. Return 0 or a negative errno; -EBUSY: a thread did not stop in time, and all run
    on. */
int crowd_stop(struct crowd *crowd, struct diag *diag);

/** How often, and how long apart, a stop is tried that can wait until a busy machine has time for all threads. */
enum { CROWD_TRIES = 6, CROWD_BETWEEN_TRIES_NS = 300000000 };

/** As crowd_stop(), while the thread `caller`, which stays stopped, makes calls. */
int crowd_stop_others(struct crowd *crowd, pid_t caller, struct diag *diag);

/** Resume all stopped threads; they stay traced. */
void crowd_go_on(struct crowd *crowd);

/** As crowd_go_on(), except for the thread that makes calls. */
void crowd_others_go_on(struct crowd *crowd, pid_t caller);

/** Wait `ns`. Running threads that stop for a signal are resumed with it. */
void crowd_wait(struct crowd *crowd, uint64_t ns);

/** Detach from all threads that stop within the limit. The others stay traced, and in the crowd: the thread that traces
    them cannot seize them again. */
void crowd_release(struct crowd *crowd, uint64_t limit_ns);

/** Detach from all threads and free the crowd's memory. A thread that does not stop stays traced until the calling
    thread ends. */
void crowd_leave(struct crowd *crowd);

/** Ask one thread to stop soon; crowd_next() returns it when it has stopped. */
void stand_interrupt(const struct stand *stand);

/** Return a thread that has stopped, with its registers, or has ended; NULL: no thread has. Never blocks. */
struct stand *crowd_next(struct crowd *crowd);

/** Resume the thread with the signal that it was about to receive; it stays traced. */
void stand_go_on(struct stand *stand);

/** Resume the thread and detach from it. */
void stand_leave(struct stand *stand);

/** Return whether a stopped thread can make calls, else the reason. */
bool stand_can_call(const struct stand *stand, struct diag *diag);

/** Return whether the recorder may make system calls in each of the stopped threads. */
bool crowd_lets_recorder_call(const struct crowd *crowd);

/** Choose a thread for calls and stop it. Return it, or NULL with the reason in `diag`: no thread can make calls. */
struct stand *calls_begin(struct crowd *crowd, struct remote *remote, struct diag *diag);
/** End the calls: restore the thread's registers and resume it, unless its whole process is stopped. */
void calls_end(struct remote *remote, struct crowd *crowd, pid_t caller);

#endif
