/* SPDX-License-Identifier: MIT */
/** A chain of methods as a plan: its source, conditions, orders, and which of the rows are wanted. */
#ifndef XHEAP_DX_PIPELINE_H
#define XHEAP_DX_PIPELINE_H

#include "dx/model/objects.h"
#include "dx/plans/plan_members.h"

/** A pipeline of a sequence. */
struct dx_pipeline {
	const struct dx_sequence *source;    /**< calls or blocks */
	const struct dx_sequence *selection; /**< the Select at the end; NULL: none */
	uint32_t order_count, condition_count;
};

/** Make the plan of a sequence: its source, filter, skip and limit, and a key of each order as an output. The caller
    adds outputs behind these, and the orders (dx_pipeline_order()). Return false if the sequence is none, or has a part
    without a translation. End the plan with plan_fini() in any case. */
bool dx_pipeline_make(struct dx_pipeline *pipeline, const struct dx_plan_making *making,
		      const struct dx_sequence *sequence);

/** Set the skip and the limit of a plan to those of Skip and Take at the end of the sequence. Return the sequence
    before them. */
const struct dx_sequence *dx_pipeline_cut(struct plan *plan, const struct dx_sequence *sequence);

/** Return whether plans may begin with the sequence; otherwise note why there is none. */
bool dx_pipeline_begins(struct dx_query *query, const struct dx_sequence *source);

/** The objects of rows, one after the other. Begin with the source of the pipeline. */
struct dx_object_reader {
	const struct dx_sequence *source;
	struct dx_event_reader *events;
	struct dx_event event;
};

/** Set the element of the row with this number; events are read on, or anew if the number is less than that of the one
    before. False: there is none, or the query is stopped. */
bool dx_object_read(struct dx_query *query, struct dx_object_reader *reader, uint64_t number,
		    struct dx_element *element);
void dx_object_reader_end(struct dx_object_reader *reader);

/** Stop the query where a plan has failed, or was interrupted. */
void dx_pipeline_failed(struct dx_query *query, const struct dx_sequence *sequence, int status, const char *reason);

#endif
