/* SPDX-License-Identifier: MIT */
/** The threads of a process that runs: seized, stopped and let go on by one thread of ours, and the calls that one of
    them makes for us. */
#ifndef XHEAP_INJECT_CROWD_H
#define XHEAP_INJECT_CROWD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/diag.h"
#include "inject/remote.h"

/** A thread of the crowd. */
struct stand {
	pid_t tid;
	bool is_stopped, is_group_stop;
	bool is_gone;    /**< it has ended, or is no longer traced */
	bool is_outside; /**< detaching: proved to be in no code of ours, and never to come back to it */
	bool is_awaited; /**< detaching: it is to stop, to be looked at */
	int signal;      /**< that was on its way to it */
	struct user_regs_struct registers; /**< while it is stopped by crowd_stop() or stand_stop() */
};

/** The threads of a process that this thread of ours traces. Set pid, zero the rest. */
struct crowd {
	pid_t pid;
	struct stand *stands;
	uint32_t count, capacity;
	bool has_moved; /**< one of them to the copy of an entry */
};

/** Priority over what else runs, for as long as threads stand; nothing where it is not allowed. */
struct urgency {
	int nice, policy, priority;
};
struct urgency urgency_begin(void);
void urgency_end(const struct urgency *before);

/** Trace all threads of the process, which run on. */
int crowd_seize(struct crowd *crowd, struct diag *diag);

/** Stop all threads, those too that begin meanwhile, and read their registers. -EBUSY: one of them did not stop in
    time; all run on then. */
int crowd_stop(struct crowd *crowd, struct diag *diag);

/** The same while one of them makes calls, which stands already and does not go on. */
int crowd_stop_others(struct crowd *crowd, pid_t caller, struct diag *diag);

/** Let all that are stopped go on, still traced. */
void crowd_go_on(struct crowd *crowd);

/** The same, but for one that makes calls. */
void crowd_others_go_on(struct crowd *crowd, pid_t caller);

/** Wait so long, while those that run get their signals. */
void crowd_wait(struct crowd *crowd, uint64_t ns);

/** Trace none of them any more, and free what crowd has. A thread that does not stop is traced until this thread of
    ours ends. */
void crowd_leave(struct crowd *crowd);

/** Make one thread stop soon; crowd_next() tells when it has. */
void stand_interrupt(const struct stand *stand);

/** A thread that has stopped by now, with its registers, or has ended; NULL: none has. */
struct stand *crowd_next(struct crowd *crowd);

/** Let it go on, still traced, with the signal that it was to get. */
void stand_go_on(struct stand *stand);

/** Let it go on and trace it no more. */
void stand_leave(struct stand *stand);

/** Whether a stopped thread can make calls for us. */
bool stand_can_call(const struct stand *stand);

/** Begin to make calls by one of the threads, which is stopped then; NULL with the reason in diag: none can. */
struct stand *calls_begin(struct crowd *crowd, struct remote *remote, struct diag *diag);
void calls_end(struct remote *remote, struct crowd *crowd, pid_t caller);

#endif
