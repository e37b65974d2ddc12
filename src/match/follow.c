/* SPDX-License-Identifier: MIT */
/*
 * Times, and the file while it grows:
 *
 *     file     | blocks of the last increment | blocks that came since |
 *     times    ----- matched ----->|<- matched by this increment ->|  not everything is in the file yet
 *                            passed                            until
 *
 * New blocks must lie behind everything that was matched. That is checked each time, like every other assumption:
 * a reported time is no promise. If an assumption does not hold, nothing is made.
 */
#include "match/follow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "trace/reader.h"
#include "trace/trace.h"

struct heap_follow {
	const char *path;
	struct heap_follow_increments increments;
	struct matching *matching;
	struct trace *trace;  /* NULL before the first look */
	uint32_t block_count; /* of the trace, at the last increment */
	uint64_t event_count; /* then */
	int error;            /* of an increment: the matching cannot be continued */
};

struct heap_follow *heap_follow_new(const char *path, const struct heap_build *how,
				    const struct heap_follow_increments *increments)
{
	assert(increments->step_events > 0);
	struct heap_follow *follow = memory_zeroed(1, sizeof(*follow));
	follow->path = path;
	follow->increments = *increments;
	follow->matching = matching_new(how);
	return follow;
}

static int64_t first_ns_from(const struct trace *trace, uint32_t block)
{
	int64_t first_ns = INT64_MAX;
	for (; block < trace_block_count(trace); block++) {
		struct trace_block head;
		trace_block_head(trace, block, &head);
		first_ns = head.first_ns < first_ns ? head.first_ns : first_ns;
	}
	return first_ns;
}

/* Return whether new event blocks lie behind what is matched. */
static int blocks_check(const struct heap_follow *follow, const struct trace *trace, struct diag *diag)
{
	return first_ns_from(trace, follow->block_count) > matching_passed_ns(follow->matching)
		       ? 0
		       : diag_fail(diag, ESTALE, "events were written late");
}

static bool is_worth_an_increment(const struct heap_follow *follow)
{
	uint64_t count = trace_dictionary(follow->trace)->event_count, added = count - follow->event_count;
	return added >= follow->increments.least_events &&
	       (!follow->increments.least_part || added >= count / follow->increments.least_part);
}

struct block_ending {
	int64_t last_ns;
	uint32_t count;
};

COMPARE_BY(ending_compare, struct block_ending, last_ns)

/* Return the time by which event blocks with this many events have ended, of those that had not ended by passed_ns;
   until_ns at most. */
static int64_t step_until(const struct trace *trace, int64_t passed_ns, int64_t until_ns, uint64_t events)
{
	struct block_ending *endings = memory_zeroed(trace_block_count(trace), sizeof(*endings));
	uint32_t count = 0, i;
	for (i = 0; i < trace_block_count(trace); i++) {
		struct trace_block head;
		trace_block_head(trace, i, &head);
		if (head.last_ns > passed_ns)
			endings[count++] = (struct block_ending){head.last_ns, head.count};
	}
	qsort(endings, count, sizeof(*endings), ending_compare);
	for (i = 0; i < count && endings[i].count < events; i++)
		events -= endings[i].count;
	until_ns = i < count && endings[i].last_ns < until_ns ? endings[i].last_ns : until_ns;
	free(endings);
	return until_ns;
}

static int advance_by_steps(struct heap_follow *follow, const struct trace *trace, int64_t until_ns,
			    const bool *is_over, struct diag *diag)
{
	int64_t step_ns = INT64_MIN, passed_ns = INT64_MIN;
	int error = 0;
	for (uint64_t events = follow->increments.step_events;
	     !error && step_ns < until_ns && !__atomic_load_n(is_over, __ATOMIC_RELAXED);) {
		step_ns = step_until(trace, matching_passed_ns(follow->matching), until_ns, events);
		passed_ns = matching_passed_ns(follow->matching);
		error = matching_increment(follow->matching, trace, step_ns, diag);
		/* There may be no time to stop at so soon. */
		if (matching_passed_ns(follow->matching) == passed_ns)
			events *= 2;
	}
	return error;
}

/* Read the trace, or what was added to it. */
static int follow_look(struct heap_follow *follow, uint64_t size_bytes, struct diag *diag)
{
	if (!follow->trace) {
		int error = trace_open_growing(&follow->trace, follow->path, diag);
		if (error)
			return error;
	} else if ((follow->error = trace_go_on(follow->trace, diag))) {
		return follow->error;
	}
	const struct trace_dictionary *dictionary = trace_dictionary(follow->trace);
	follow->error = !dictionary->is_complete && dictionary->cut_offset < size_bytes
				? diag_fail(diag, ESTALE, "%s", dictionary->cut_reason)
				: blocks_check(follow, follow->trace, diag);
	return follow->error;
}

int heap_follow_advance(struct heap_follow *follow, int64_t until_ns, uint64_t size_bytes, const bool *is_over,
			struct diag *diag)
{
	int error = follow->error ? follow->error : follow_look(follow, size_bytes, diag);
	if (error || !is_worth_an_increment(follow))
		return error;
	follow->error = advance_by_steps(follow, follow->trace, until_ns, is_over, diag);
	follow->block_count = trace_block_count(follow->trace);
	follow->event_count = trace_dictionary(follow->trace)->event_count;
	return follow->error;
}

bool heap_follow_sums(const struct heap_follow *follow, struct matching_sums *sums)
{
	return matching_sums_take(follow->matching, sums);
}

const struct trace *heap_follow_trace(const struct heap_follow *follow)
{
	return follow->trace;
}

bool heap_follow_watch_settle(struct heap_follow *follow)
{
	return matching_watch_settle(follow->matching);
}

int heap_follow_end(struct heap_follow *follow, struct trace **trace, struct heap_table **table, struct diag *diag)
{
	int error = follow->error ? follow->error : trace_open(trace, follow->path, diag);
	if (error)
		return error;
	if (follow->trace && !trace_continues(follow->trace, *trace))
		error = diag_fail(diag, ESTALE, "what was read of it before is not there any more");
	error = error ? error : blocks_check(follow, *trace, diag);
	error = error ? error : matching_end(follow->matching, *trace, table, diag);
	if (error)
		trace_close(*trace);
	return error;
}

void heap_follow_free(struct heap_follow *follow)
{
	if (!follow)
		return;
	matching_free(follow->matching);
	trace_close(follow->trace);
	free(follow);
}
