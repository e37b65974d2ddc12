/* SPDX-License-Identifier: MIT */
/**
 * The work of a server, in threads of its own. A request becomes a job, which waits until its trace is open and no
 * other job asks it.
 *
 *     waiting --> running --> done
 *        |           |         ^
 *        +-----------+---------+    replaced by a newer request, the client has gone, a deadline, the end
 *
 * The first trace is opened at once, others by the first job that needs them. Jobs that wait for that longer than a
 * moment are answered how far it is. When a trace has no job, and a first picture of it came from its index, what later
 * pictures need is found.
 */
#ifndef XHEAP_SERVER_JOBS_H
#define XHEAP_SERVER_JOBS_H

#include "server/http/reply.h"
#include "analysis/opened_trace.h"
#include "server/http/request.h"
#include "server/live/live_trace.h"

struct jobs;

/** A request that is answered. The caller makes it, zeroed but for the first members. */
struct job {
	struct view_request request;
	int socket;          /**< of the client, which is open until the job is done; -1: none */
	void *context;       /**< the caller's */
	struct reply *reply; /**< when it is done: the caller's, who releases it */
	/* Of the jobs. */
	struct job *next;
	uint64_t given_ns, begun_ns;
	bool is_running;
	unsigned end_status; /**< it is to end with this status; 0: no */
};

/** What jobs are about. */
struct jobs_plan {
	const char *const *paths; /**< of traces, the caller's */
	unsigned path_count;
	unsigned runs;                 /**< as in server_plan */
	struct opened_options options; /**< how they are opened */
	bool is_live;                  /**< the first one is recorded now; jobs_note() says how that goes */
	uint64_t deadline_ms;          /**< a job that runs for longer ends */
	/** Take a job that is done. Called by any thread, once for each job. */
	void (*done)(struct job *job);
};

/** Begin the threads. Return NULL with the reason in `diag` if they cannot begin. End it with jobs_stop()
    and jobs_free(). */
struct jobs *jobs_begin(const struct jobs_plan *plan, struct diag *diag);

/** Have the job done. It stays the caller's, but may not be touched until it is done. */
void jobs_give(struct jobs *jobs, struct job *job);

/** Look at deadlines and clients that have gone; called several times a second. Return whether there are jobs. */
bool jobs_look(struct jobs *jobs);

/** Take what is known of the recording of the first trace. When it has ended the trace is opened. */
void jobs_note(struct jobs *jobs, const struct live_note *note);

/** Return whether a page has asked for a flush since the last call. */
bool jobs_take_flush(struct jobs *jobs);

/** End the threads, and all jobs, with an answer that says so. Jobs that are given later end at once. */
void jobs_stop(struct jobs *jobs);

/** Close the traces and free the jobs, which were stopped. */
void jobs_free(struct jobs *jobs);

#endif
