/* SPDX-License-Identifier: MIT */
/**
 * A controller's side of the talk with a session's logger (control.h), for the command and for programs. `socket` comes
 * from session_connect(). Errors are negative errnos with the reason in diag: -EPIPE when the logger is gone,
 * -ETIMEDOUT when it does not answer.
 */
#ifndef XHEAP_SESSION_CONTROLLER_H
#define XHEAP_SESSION_CONTROLLER_H

#include <sys/types.h>

#include "base/diag.h"
#include "session/control.h"
#include "session/options.h"

enum { CONTROLLER_PIDS_MAX = OPTION_PIDS_MAX };

/** What is heard beside the answers. */
enum controller_word {
	CONTROLLER_NOTE,     /**< for the user: how it goes */
	CONTROLLER_WARNING,  /**< for the user: the trace lacks something, or a process is not as it was */
	CONTROLLER_ATTACHED, /**< a process is recorded from now on, and how long it stood */
	CONTROLLER_REFUSED   /**< why a process is not */
};

/** Who hears it; NULL in its place: nobody. */
struct controller_listener {
	void (*on_message)(void *cookie, enum controller_word word, const char *text);
	void *cookie;
};

/** What a session is, and does. */
struct controller_thread {
	size_t target; /**< place in the targets */
	struct control_thread thread;
	char name[32];
};

struct controller_state {
	bool is_alive;
	pid_t logger_pid;
	struct control_state session;
	char path[sizeof(((struct control_message *)0)->text)]; /**< of its trace */
	struct control_message *targets;                        /**< CONTROL_TARGET, one for each executed image */
	size_t target_count, target_capacity;
	struct controller_thread *threads; /**< those that live, target by target, if they were asked for */
	size_t thread_count, thread_capacity;
	/** CONTROL_INACTIVE, one for each process in which inactive code stays mapped */
	struct control_message *inactive;
	size_t inactive_count, inactive_capacity;
	int error; /**< why recording ended, else 0 */
	char reason[256];
};

/** How a session shall change. Zero it. */
struct controller_update {
	pid_t added[CONTROLLER_PIDS_MAX], removed[CONTROLLER_PIDS_MAX];
	unsigned added_count, removed_count;
	bool has_options;
	uint32_t options, wait_limit_ms; /**< OPTION_* bits */
};

/** Tell it something that it answers by CONTROL_DONE; its answer's error. */
int controller_ask(int socket, const struct control_message *message, const struct controller_listener *listener,
		   struct diag *diag);

/** Ask for the state; controller_state_fini() it in any case. */
int controller_query(int socket, bool with_threads, struct controller_state *state,
		     const struct controller_listener *listener, struct diag *diag);
void controller_state_fini(struct controller_state *state);

/** Attach to all of these processes; the first refusal is the error. Those that could be had are recorded then all the
    same. */
int controller_attach(int socket, const pid_t *pids, unsigned count, const struct controller_listener *listener,
		      struct diag *diag);

/** Let the session have the options `now`, if one that may change while it runs differs from `before`. */
void controller_update_options(struct controller_update *update, const struct session_options *now,
			       const struct session_options *before);

/** Let the session have these processes and no others: what that adds and removes. */
int controller_update_set(struct controller_update *update, const struct controller_state *state, const pid_t *pids,
			  unsigned count, struct diag *diag);

/** Change the session: all of it, or nothing. */
int controller_update(int socket, const struct controller_update *update, const struct controller_listener *listener,
		      struct diag *diag);

/** End the session: it lets go of its processes, and the trace is whole. The error of recording is that of
    summary->error. */
int controller_stop(int socket, struct control_summary *summary, const struct controller_listener *listener,
		    struct diag *diag);

#endif
