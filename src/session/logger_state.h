/* SPDX-License-Identifier: MIT */
/** The state that the parts of the logger share, and the functions that one part has for another. All run on the
    logger's main thread. */
#ifndef XHEAP_SESSION_LOGGER_STATE_H
#define XHEAP_SESSION_LOGGER_STATE_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "inject/inject.h"
#include "os/identity.h"
#include "region/region.h"
#include "session/control.h"
#include "session/directory.h"
#include "session/drain.h"
#include "session/tracer.h"
#include "session/options.h"
#include "session/session_clock.h"
#include "session/store.h"
#include "session/watch.h"

/** A process of a target. */
struct member {
	struct identity identity;
	pid_t pid;                           /* in the logger's namespace; 0: gone before the logger found it */
	pid_t inner;                         /* in the process's own namespace */
	bool is_foreign;                     /* the two namespaces differ */
	uint64_t start_ticks;                /* with the index in the region, this identifies the process */
	uint32_t state;                      /* 0 unknown, 1 alive, 2 ended */
	uint64_t ended_ns;                   /* when its end was noticed, while its status is unknown */
	uint64_t sampled_ns, resident_bytes; /* when its memory was last measured, and what was last written */
	/* more is resident than the trigger allows; limit_hits has its first value */
	bool is_above, has_limit_hits;
	uint64_t limit_hits;   /* of its cgroup's memory limit */
	char *cgroups;         /* the cgroups with these hits; NULL: not read yet */
	struct inject *inject; /* of a forked process that loads images; process 0 uses the target's */
};

/** An executed image and the processes forked from it. */
struct target {
	struct target *next;
	struct region region;
	struct inject inject;
	struct drain_region *drain;
	char region_path[REGION_FILE_PATH_BYTES];
	uint32_t number; /* of the region */
	uint32_t parent, exec_generation;
	uint32_t alive;
	bool is_let_go;    /* its last process runs on, detached */
	bool is_damaged;   /* its region is damaged, and its recording has ended */
	bool is_unread;    /* it was detached from while its heaps were read */
	bool has_inactive; /* a detached process still has the region mapped */
	struct member member[REGION_PROCESS_MAX];
	uint32_t member_count;
	uint32_t doorbell_seen;
	uint64_t reaped_ns;
	uint64_t stack_start; /* of its image; 0: unknown */
	uint64_t pause_ns;    /* how long all its threads were paused by the attach */
};

/** A wait status that the command has sent. */
struct exit_status {
	pid_t pid;
	int status;
	struct exit_status *next;
};

/** A process to attach to once the remains of an earlier detach are gone. */
struct late_attach {
	struct late_attach *next;
	int control;
	pid_t pid;
};

/** A connection that sends commands. */
struct controller {
	int socket;
	struct controller *next;
};

struct logger {
	const struct session_options *options;
	struct session_options *own_options; /* the same object as `options`, for changes */
	/* the socket of the command that started the logger; one of the controllers */
	int control;
	struct controller *controllers;
	int listener; /* the session's listening socket; -1: none */
	bool has_controller, is_command_known, is_command_over, is_recording_over, is_stopping;
	struct session_directory directory;
	struct store *store;
	struct writer *writer;                     /* owned by the store */
	struct flight_request *request, *requests; /* to write out: `request` is under way, `requests` wait */
	uint64_t limits_checked_ns;
	struct drain *drain;
	struct target *targets;
	struct exit_status *exit_statuses; /* sent by the command */
	struct late_attach *late;
	struct inactive *inactive; /* processes in which the recorder's code stays mapped, inactive */
	struct session_clock clock;
	bool is_clock_set; /* the trace has it */
	bool is_appended;  /* the trace continues an older recording */
	struct doorbell doorbell;
	uint32_t doorbell_seen;
	int watch;
	struct hook_cache *hooks;
	struct tracer *tracer;
	pid_t command_pid;
	uint32_t untraced;                   /* how many processes were named as untraced */
	struct untraced *untraced_processes; /* NULL before the recording begins and after it ended */
	uint64_t flushed_ns, trimmed_ns, beat_ns;
	uint64_t stopping_ns;      /* when recording was to end; 0: it continues */
	bool is_elsewhere_noted;   /* a region outside the session's directory was reported */
	struct indexing *indexing; /* NULL: no index is made during the recording */
	int error;
	struct diag diag;
	int ended; /* descriptor of the file `ended`; -1: recording continues */
	/* The robust list by which the kernel notifies targets of the logger's death. */
	struct robust_list_head robust;
};

/* ---- logger.c ---- */

/** Note in the session's directory that calls were made after recording ended, by a process (trace id) or by ones
    without a row (TRACE_NONE). cookie: the logger. */
void logger_note_after(void *cookie, uint32_t process);

/* ---- session_text.c ---- */

/** Write the file `session` of the session's directory, which recovery reads first. */
void logger_session_write(struct logger *logger);

/** Write the session's options into the trace. */
void logger_options_write(struct logger *logger);

/* ---- logger.c, members.c, tracer_results.c ---- */

/** End the measurement of the clock's rate and set it in the trace, if it has lasted long enough or is urgent. */
void logger_settle_clock(struct logger *logger, bool is_urgent);

/** Find forked processes that have entered themselves in the target's region. */
void logger_find_members(const struct logger *logger, struct target *target);

/** Return the index of the live process among the target's, or UINT32_MAX. */
uint32_t logger_member_of_pid(const struct target *target, pid_t pid);

/** Detach from the process at `index` and report the result to the controllers. On failure return a negative errno with
 *  the reason in `diag`; without `diag` print a note, take the process for detached, and return 0. */
int logger_detach_member(struct logger *logger, struct target *target, uint32_t index, struct diag *diag);

/** Take what is recorded, and answer messages, while this thread waits for another one. leaving: a process of `left`
 *  that is being detached from, which gets empty answers; NULL: none. */
void logger_serve_while(struct logger *logger, const struct target *left, const struct member *leaving);

/** Attach to the processes that waited for the end of an earlier detach. */
void logger_attach_late(struct logger *logger);

/** Remove the targets whose processes are all detached. */
void logger_remove_let_go(struct logger *logger);

/** Handle the results of the tracer. Return true if there was one. */
bool logger_take_results(struct logger *logger);

/** Take and write everything that the targets have recorded so far. Return 0 or a negative errno. */
int logger_drain_all(struct logger *logger, struct diag *diag);

/** End the image that `pid` was, at the ticks at which its next image begins. */
void logger_image_over(struct logger *logger, pid_t pid, uint64_t ticks);

/** Set the trace ids of the image that `pid` of the target is about to execute. caller: the index of the process that
    announced the exec. */
void logger_exec_identity(struct target *target, pid_t pid, uint64_t caller, struct tracer_task *request);

/** Fill in what recording has cost so far. */
void logger_statistics(const struct logger *logger, struct trace_statistics *statistics);

/** Return the CPU time of this process in ns. */
uint64_t logger_cpu(void);

/* ---- flight.c ---- */

/** Let a signal make a flight recorder write out; other sessions ignore the signal. */
void flight_begin(const struct logger *logger);

/** Queue a request to write out what is in memory, or only a snapshot of it. The answer goes to `socket`; -1: to all
    controllers as a note, with the reason. */
void flight_ask(struct logger *logger, int socket, bool is_snapshot, const char *reason);

/** Drop the socket from all requests: it is about to be closed. */
void flight_forget(struct logger *logger, int socket);

/** Check the resident memory of a member against the triggers. */
void flight_note_memory(struct logger *logger, struct member *member, uint64_t resident_bytes);
/** Check the end of a member (enum trace_end) against the triggers. */
void flight_note_end(struct logger *logger, struct member *member, uint8_t end, int32_t status);

/** Start and finish requests. Return true if there was one. */
bool flight_check(struct logger *logger, uint64_t now_ns);

/** Wait for the request under way and drop the others. */
void flight_end(struct logger *logger);

/* ---- untraced.c ---- */

/** Begin to search for untraced processes. */
void untraced_begin(struct logger *logger);
/** End the search and free its state; calling it twice is harmless. */
void untraced_end(struct logger *logger);

/** Write a process that runs untraced into the trace, with the reason in its note, and notify the controllers. */
void untraced_add(struct logger *logger, const struct trace_process *process);

/** Mark a process that has executed an image as known: it is recorded. */
void untraced_know(struct logger *logger, pid_t pid);

/** Mark the children of a process as known: they existed before the attach. */
void untraced_know_children(struct logger *logger, pid_t pid);

/** Search for processes that descend from recorded ones and have executed an image without an announcement; report
    each. Most calls return at once since a search is not due; with is_last it always runs. now: monotonic_now_ns().
    Return true if the next search should come soon. */
bool untraced_search(struct logger *logger, uint64_t now, bool is_last);

/* ---- inactive.c ---- */

/** Write a text about the code that stays in a detached process. */
void inactive_describe(char *text, size_t size, const struct inject_rest *rest);

/** Remember that the recorder's code stays mapped in a process of the target. */
void inactive_add(struct logger *logger, const struct target *target, pid_t pid, const char *command,
		  const struct inject_rest *rest);

/** Return whether code is known to stay in the process, from the region with this inode. */
bool inactive_has(const struct logger *logger, pid_t pid, uint64_t inode);

/** Try, from time to time, to remove inactive code. now: monotonic_now_ns(). */
void inactive_check(struct logger *logger, uint64_t now);

/** Try it for the last time; the trace names what stays. */
void inactive_end(struct logger *logger);

/** Send a controller a CONTROL_INACTIVE for each such process. */
void inactive_tell(const struct logger *logger, int socket);

/* ---- answer.c ---- */

/** Add a controller for the connection. Return false without memory. */
bool logger_add_controller(struct logger *logger, int socket);

/** Handle the controllers' messages, up to 16 of each. Return true if there was one. */
bool logger_check_controllers(struct logger *logger);

/** Send a message to all controllers. */
void logger_tell_all(const struct logger *logger, const struct control_message *message);

/** Tell waiting controllers that the logger is alive and will answer. Accepts new connections, too. */
void logger_keepalive(struct logger *logger);

/** Send all controllers a text about progress, for their users. */
void logger_note(struct logger *logger, const char *text);

/** Send them a warning: the trace lacks something, or something stays in a process. Quiet commands show it, too. */
void logger_warn(struct logger *logger, const char *text);

/** Send them the text that recording has ended, as a warning. */
void logger_say_end(struct logger *logger, const char *text);

#endif
