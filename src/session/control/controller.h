/* SPDX-License-Identifier: MIT */
/**
 * A controller's side of the messages of control.h, for the command and for programs that link libxheap. `socket` comes
 * from session_connect(). Functions return 0, or a negative errno with the reason in `diag`: -EPIPE if the logger is
 * gone, -ETIMEDOUT if it does not answer. Any thread may call them; one thread at a time uses a socket.
 */
#ifndef XHEAP_SESSION_CONTROLLER_H
#define XHEAP_SESSION_CONTROLLER_H

#include <sys/types.h>

#include "base/diag.h"
#include "session/control/control.h"
#include "session/control/options.h"

enum { CONTROLLER_PIDS_MAX = OPTION_PIDS_MAX };

/** Kinds of text that arrive between the answers. */
enum controller_word {
	CONTROLLER_NOTE,     /**< for the user: progress */
	CONTROLLER_WARNING,  /**< for the user: the trace lacks something, or something stays in a process */
	CONTROLLER_ATTACHED, /**< a process is recorded from now on; the text has the pause */
	CONTROLLER_REFUSED   /**< a process is not recorded; the text says why */
};

/** The receiver of such texts; a NULL pointer to it: they are dropped. */
struct controller_listener {
	void (*on_message)(void *cookie, enum controller_word word, const char *text);
	void *cookie;
};

/** A live thread of a target, as CONTROL_THREAD describes it. */
struct controller_thread {
	size_t target; /**< index in controller_state.targets */
	struct control_thread thread;
	char name[32];
};

/** The answer to controller_query(). */
struct controller_state {
	bool is_alive;
	pid_t logger_pid;
	struct control_state session;
	char path[sizeof(((struct control_message *)0)->text)]; /**< of the session's trace */
	struct control_message *targets;                        /**< CONTROL_TARGET, one for each executed image */
	size_t target_count, target_capacity;
	struct controller_thread *threads; /**< live threads, target by target, if the query asked for them */
	size_t thread_count, thread_capacity;
	/** CONTROL_INACTIVE, one for each process in which inactive code stays mapped */
	struct control_message *inactive;
	size_t inactive_count, inactive_capacity;
	int error; /**< why recording ended, a negative errno; 0: it has not */
	char reason[256];
};

/** The changes of controller_update(). Zero it first. */
struct controller_update {
	pid_t added[CONTROLLER_PIDS_MAX], removed[CONTROLLER_PIDS_MAX];
	unsigned added_count, removed_count;
	bool has_options;
	uint32_t options, wait_limit_ms; /**< OPTION_* bits */
};

/** Send a message that CONTROL_DONE answers, and wait, however long the logger shows that it works, for the answer.
    Return the answer's error. */
int controller_answer(int socket, const struct control_message *message, struct control_message *answer,
		      const struct controller_listener *listener, struct diag *diag);

/** As controller_answer(), for whoever needs no more than the error. */
int controller_ask(int socket, const struct control_message *message, const struct controller_listener *listener,
		   struct diag *diag);

/** Have the logger write the core of a process to a new file, whose path is absolute. may_stop: as of
    CONTROL_CORE. */
int controller_write_core(int socket, pid_t pid, const char *path, bool may_stop, struct control_core *made,
			  const struct controller_listener *listener, struct diag *diag);

/** Query the session's state into *state. The caller frees it by controller_state_fini(), after an error, too. */
int controller_query(int socket, bool with_threads, struct controller_state *state,
		     const struct controller_listener *listener, struct diag *diag);
/** Take a message of the answer to CONTROL_QUERY into *state, which is zero at first. Return 1 if it was the last one,
    0 if more follow, or a negative errno. */
int controller_state_take(struct controller_state *state, const struct control_message *message, struct diag *diag);
/** Free the arrays of the state. */
void controller_state_fini(struct controller_state *state);

/** Attach to all of these processes. Return the first refusal as the error; the other processes are recorded
    nevertheless. */
int controller_attach(int socket, const pid_t *pids, unsigned count, const struct controller_listener *listener,
		      struct diag *diag);

/** Add to *update the options `now`, if an option that may change during the recording differs from `before`. */
void controller_update_options(struct controller_update *update, const struct session_options *now,
			       const struct session_options *before);

/** Add to *update what makes exactly these processes the session's targets. Return -E2BIG above CONTROLLER_PIDS_MAX. */
int controller_update_set(struct controller_update *update, const struct controller_state *state, const pid_t *pids,
			  unsigned count, struct diag *diag);

/** Change the session: all of the update, or nothing. On failure the processes that were added are detached again. */
int controller_update(int socket, const struct controller_update *update, const struct controller_listener *listener,
		      struct diag *diag);

/** Wait up to 5 s for the end of the logger, which has sent its summary: recover refuses a session with a logger. */
void controller_await_end(int socket);

/** Stop the session: detach from its processes and complete the trace. Fill *summary; return -EIO if summary->error is
    set. */
int controller_stop(int socket, struct control_summary *summary, const struct controller_listener *listener,
		    struct diag *diag);

/** Return whether the recording failed: its end at the size that its user gave is none. */
bool controller_is_failure(const struct control_summary *summary);

#endif
