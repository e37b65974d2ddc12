/* SPDX-License-Identifier: MIT */
/** A profile of what a session has recorded since the last one, put into a queue, or into a file of a directory. */
#ifndef XHEAP_PUSH_PROFILE_H
#define XHEAP_PUSH_PROFILE_H

#include "export/clickhouse.h"
#include "export/export_past.h"
#include "push/push_labels.h"
#include "push/push_place.h"
#include "push/push_queue.h"

/** What makes profiles of a session. Zero the rest. */
struct push_maker {
	const struct push_place *place;
	const struct push_labels *labels; /**< the user's */
	const char *session;
	struct push_queue *queue;
	bool with_lines;
	/** refuse a trace of which an earlier process has not left a past: its totals would come twice */
	bool needs_past;
	struct export_past past;
	bool has_past; /**< that of an earlier process was looked for */
	struct clickhouse_past clickhouse;
	/** what the process of this number said of itself when it was last asked, by its environment and its context */
	struct push_labels environment, context;
	uint32_t told_pid;
	uint64_t dropped; /**< by the queue when the last profile was made */
	bool is_made;     /**< the last call of push_profile_make() has made a profile, whatever else went wrong */
	/** Gets the one profile of a trace that is over, of the host that the trace names; NULL: it goes where the
	    place says. */
	struct sink *loaded;
};

/** Make a profile of the trace, put it into the queue, or into the directory that the place is, and set is_made. Return
    0, or a negative errno with the reason in `diag`, also of a profile that was made while what an earlier process left
    is damaged. */
int push_profile_make(struct push_maker *maker, const char *trace, struct diag *diag);

/** Free what it has. */
void push_maker_fini(struct push_maker *maker);

#endif
