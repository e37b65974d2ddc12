/* SPDX-License-Identifier: MIT */
/** What the parts of the logger share: its state, and what one part does for another. */
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
	pid_t pid;                           /* in our namespace; 0: was gone before we saw it */
	pid_t inner;                         /* in its own */
	bool is_foreign;                     /* which is another */
	uint64_t start_ticks;                /* with the place in the region, this tells one process from another */
	uint32_t state;                      /* 0 unknown, 1 alive, 2 ended */
	uint64_t ended_ns;                   /* when we saw it end, while its status is not known */
	uint64_t sampled_ns, resident_bytes; /* when we looked at its memory, and what we wrote last */
	bool is_above, has_limit_hits;       /* more is resident than the trigger says; what comes next is known */
	uint64_t limit_hits;                 /* of its cgroup's memory limit */
	char *cgroups;                       /* which these are; NULL: not looked at yet */
	struct inject *inject;               /* of a forked process that loads images; process 0 has the target's */
};

/** One executed image and what it forked. */
struct target {
	struct target *next;
	struct region region;
	struct inject inject;
	struct drain_region *drain;
	char region_path[REGION_FILE_PATH_BYTES];
	uint32_t number; /* of the region */
	uint32_t parent, exec_generation;
	uint32_t alive;
	bool is_let_go;    /* its last process runs on */
	bool is_damaged;   /* its region is, and recording of it has ended */
	bool is_unread;    /* it was let go of while its heaps were read */
	bool has_inactive; /* a process that was detached from has it mapped still */
	struct member member[REGION_PROCESS_MAX];
	uint32_t member_count;
	uint32_t doorbell_seen;
	uint64_t reaped_ns;
	uint64_t stack_start; /* of its image; 0: not known */
	uint64_t pause_ns;    /* all its threads stood so long when it was attached to */
};

/** Wait statuses that the command told us. */
struct exit_status {
	pid_t pid;
	int status;
	struct exit_status *next;
};

/** A process that is to be attached to once it is rid of what it had when it was let go of. */
struct late_attach {
	struct late_attach *next;
	int control;
	pid_t pid;
};

/** Who tells us what to do. */
struct controller {
	int socket;
	struct controller *next;
};

struct logger {
	const struct session_options *options;
	struct session_options *own_options; /* the same; they may change */
	int control;                         /* of who started us; it is one of the controllers */
	struct controller *controllers;
	int listener; /* of a session; -1 */
	bool has_controller, is_command_known, is_command_over, is_recording_over, is_stopping;
	struct session_directory directory;
	struct store *store;
	struct writer *writer;                     /* the store's */
	struct flight_request *request, *requests; /* to write out: under way, and those that wait */
	uint64_t limits_checked_ns;
	struct drain *drain;
	struct target *targets;
	struct exit_status *exit_statuses; /* that the command told us */
	struct late_attach *late;
	struct inactive *inactive; /* processes in which our code stays mapped, inactive */
	struct session_clock clock;
	bool is_clock_set; /* in the trace */
	bool is_appended;  /* to what was recorded before */
	struct doorbell doorbell;
	uint32_t doorbell_seen;
	int watch;
	struct hook_cache *hooks;
	struct tracer *tracer;
	pid_t command_pid;
	uint32_t untraced;                   /* processes that were named as untraced */
	struct untraced *untraced_processes; /* NULL: before the beginning and behind the end */
	uint64_t flushed_ns, trimmed_ns, beat_ns;
	uint64_t stopping_ns;      /* when recording was to end; 0: it goes on */
	bool is_elsewhere_noted;   /* that a region found no room in the session's directory */
	struct indexing *indexing; /* NULL: no index is made meanwhile, or none can be */
	int error;
	struct diag diag;
	int ended; /* of what is kept of the recording's end; -1: it goes on */
	/* The robust list that tells targets of our death. */
	struct robust_list_head robust;
};

/* ---- logger.c ---- */

/** Keep what is known of the recording's end, after which a process of the trace, or none (TRACE_NONE), has made calls.
    cookie: the logger. */
void logger_note_after(void *cookie, uint32_t process);

/* ---- session_text.c ---- */

/** Write the file of the session's directory that recover reads first. */
void logger_session_write(struct logger *logger);

/** Write the session's options into the trace. */
void logger_options_write(struct logger *logger);

/* ---- logger.c, members.c, tracer_results.c ---- */

/** Measure the clock's rate to the end and tell the trace, when there was time enough or it is urgent. */
void logger_settle_clock(struct logger *logger, bool is_urgent);

/** Take note of forked processes that have found themselves in the target's region. */
void logger_find_members(const struct logger *logger, struct target *target);

/** The place of the living process among the target's, or UINT32_MAX. */
uint32_t logger_member_of_pid(const struct target *target, pid_t pid);

/** Detach from the process at `index` and report the result to the controllers. On failure return a negative errno with
 *  the reason in `diag`; without `diag` print a note, take the process for detached, and return 0. */
int logger_detach_member(struct logger *logger, struct target *target, uint32_t index, struct diag *diag);

/** Take what is recorded, and answer messages, while this thread waits for another one. leaving: a process of `left`
 *  that is being detached from, which gets empty answers; NULL: none. */
void logger_serve_while(struct logger *logger, const struct target *left, const struct member *leaving);

/** Attach to the processes that waited for an earlier detach, if that is over. */
void logger_attach_late(struct logger *logger);

/** Remove the targets that were detached from. */
void logger_remove_let_go(struct logger *logger);

/** Take what became of held processes. True when there was something. */
bool logger_take_results(struct logger *logger);

/** Take what the targets have recorded up to now, and write it. 0 or a negative errno. */
int logger_drain_all(struct logger *logger, struct diag *diag);

/** The image that pid was is over since the time (ticks) at which its successor begins. */
void logger_image_over(struct logger *logger, pid_t pid, uint64_t ticks);

/** Find the trace ids for the image that pid, of the target, is about to become; caller: the index of the process that
    has announced that. */
void logger_exec_identity(struct target *target, pid_t pid, uint64_t caller, struct tracer_task *request);

/** What recording has cost up to now. */
void logger_statistics(const struct logger *logger, struct trace_statistics *statistics);

/** ns of CPU of this process. */
uint64_t logger_cpu(void);

/* ---- flight.c ---- */

/** A signal makes a flight recorder write out, and does nothing to other sessions. */
void flight_begin(const struct logger *logger);

/** Write out what is in memory as soon as can be, or for a look; the answer goes to the socket, or to all as a note
    (-1, with the reason). */
void flight_ask(struct logger *logger, int socket, bool is_snapshot, const char *reason);

/** The socket will be closed. */
void flight_forget(struct logger *logger, int socket);

/** What may be a trigger: memory that is resident, an end. */
void flight_note_memory(struct logger *logger, struct member *member, uint64_t resident_bytes);
void flight_note_end(struct logger *logger, struct member *member, uint8_t end, int32_t status);

/** Begin and end what is asked for. True when there was something. */
bool flight_check(struct logger *logger, uint64_t now_ns);

/** Wait for what is under way; the rest comes to nothing. */
void flight_end(struct logger *logger);

/* ---- untraced.c ---- */

void untraced_begin(struct logger *logger);
void untraced_end(struct logger *logger);

/** Write a process that runs untraced, with the reason in its note, into the trace, and tell the controllers. */
void untraced_add(struct logger *logger, const struct trace_process *process);

/** Take a process that has executed an image for known: it is recorded. */
void untraced_know(struct logger *logger, pid_t pid);

/** Take the children of a process for known: they were there before it was attached to. */
void untraced_know_children(struct logger *logger, pid_t pid);

/** Look for processes that descend from recorded ones and have executed an image that nobody announced; name each. Most
 *  calls find that it is not time for a look; the last one always looks. now: as monotonic_now_ns(). True when the next
 *  look should come soon. */
bool untraced_search(struct logger *logger, uint64_t now, bool is_last);

/* ---- inactive.c ---- */

/** Say what stays in a process that was detached from. */
void inactive_describe(char *text, size_t size, const struct inject_rest *rest);

/** Keep in mind that code of ours stays mapped in a process of the target. */
void inactive_add(struct logger *logger, const struct target *target, pid_t pid, const char *command,
		  const struct inject_rest *rest);

/** Whether that is known of the process and the region with this inode. */
bool inactive_has(const struct logger *logger, pid_t pid, uint64_t inode);

/** Remove what can be removed by now, from time to time. */
void inactive_check(struct logger *logger, uint64_t now);

/** The same for the last time; what stays is named in the trace. */
void inactive_end(struct logger *logger);

/** Tell a controller about each. */
void inactive_tell(const struct logger *logger, int socket);

/* ---- answer.c ---- */

/** Take a connection as a controller. */
bool logger_add_controller(struct logger *logger, int socket);

/** Do what controllers ask for. True when there was something. */
bool logger_check_controllers(struct logger *logger);

void logger_tell_all(const struct logger *logger, const struct control_message *message);

/** Whoever waits for an answer is to wait on. */
void logger_keepalive(struct logger *logger);

/** Tell all controllers, for their users, how it goes. */
void logger_note(struct logger *logger, const char *text);

/** Tell them what the trace lacks, or what is left in a process; they show it even when they are quiet. */
void logger_warn(struct logger *logger, const char *text);

/** Tell them that recording has ended; the same. */
void logger_say_end(struct logger *logger, const char *text);

#endif
