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
#include "inject/seize.h"
#include "os/identity.h"
#include "region/region.h"
#include "session/control/control.h"
#include "session/control/options.h"
#include "session/control/session_clock.h"
#include "session/control/watch.h"
#include "session/directory/directory.h"
#include "session/drain/drain.h"
#include "session/store/indexing.h"
#include "session/store/store.h"
#include "session/tracer/tracer.h"
#include "trace/process_rows.h"

/** Of a row of a region's processes: nobody yet, a process that runs, one that has ended. */
enum member_state { MEMBER_UNKNOWN, MEMBER_LIVE, MEMBER_ENDED };

/** A process of a target. */
struct member {
	struct identity identity;
	pid_t pid;            /* in the logger's namespace; 0: gone before the logger found it */
	pid_t inner;          /* in the process's own namespace */
	bool is_foreign;      /* the two namespaces differ */
	uint64_t start_ticks; /* with the index in the region, this identifies the process */
	enum member_state state;
	uint64_t ended_ns;                   /* when its end was noticed, while its status is unknown */
	uint64_t sampled_ns, resident_bytes; /* when its memory was last measured, and what was last written */
	/* the most of it, and when that rose; what was resident when it was last read by kind of mapping */
	uint64_t resident_max, risen_ns, split_bytes;
	uint64_t first_split_ns, split_ns; /* when it was read first, and last; 0: not yet */
	/* more is resident than the trigger allows; limit_hits has its first value */
	bool is_above, has_limit_hits;
	bool has_limits; /* the limits of its memory are in the trace */
	/* what the kernel had done for want of memory when the recording began, with has_before */
	struct trace_cause before;
	bool has_before;
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
	bool may_gain;     /* its execs are recorded although they give it privileges */
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
	bool is_slow; /* it did not take the last message to all */
	struct controller *next;
};

struct logger {
	const struct session_options *options;
	struct session_options *own_options; /* the same object as `options`, for changes */
	/* the socket of the command that started the logger; one of the controllers */
	int control;
	struct controller *controllers;
	int listener; /* the session's listening socket; -1: none */
	/* the controller that is root's keeper of images, of a user's session that takes their starts; -1: none */
	int keeper;
	uint64_t announced_ns; /* when the session was last announced to it */
	bool has_controller, is_command_over, is_recording_over, is_stopping;
	struct session_directory directory;
	struct store *store;
	struct writer *writer;                     /* owned by the store */
	struct flight_request *request, *requests; /* to write out: `request` is under way, `requests` wait */
	uint64_t limits_checked_ns;
	struct drain *drain;
	struct target *targets;
	struct exit_status *exit_statuses; /* sent by the command */
	struct late_attach *late;
	struct seize_wait wait;    /* of all detaches */
	struct inactive *inactive; /* processes in which the recorder's code stays mapped, inactive */
	struct session_clock clock;
	bool is_clock_set; /* the trace has it */
	bool is_appended;  /* the trace continues an older recording */
	struct doorbell doorbell;
	uint32_t doorbell_seen;
	int watch;
	struct residents *residents; /* NULL: none was needed yet */
	struct hook_cache *hooks;
	struct tracer *tracer;
	pid_t command_pid;
	uint32_t untraced;                   /* how many processes were named as untraced */
	struct untraced *untraced_processes; /* NULL before the recording begins and after it ended */
	uint64_t flushed_ns, trimmed_ns, beat_ns;
	uint64_t
		kept_alive_ns; /* when controllers last knew that the logger is alive: when the round began, or later */
	uint64_t stopping_ns;  /* when recording was to end; 0: it continues */
	bool is_elsewhere_noted;   /* a region outside the session's directory was reported */
	struct indexing *indexing; /* NULL: no index is made during the recording */
	bool is_index_begun;       /* or could not begin */
	int64_t flushed_until_ns;  /* everything up to that time of the trace was written when the last flush ended */
	struct indexing_cut cut;   /* the newest; until_ns is 0 before the first */
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

#endif
