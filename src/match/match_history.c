/* SPDX-License-Identifier: MIT */
/*
 * Until a fork of a process is known, nothing is kept of its blocks that have ended. A child may free one of them that
 * its parent freed since the fork. So when the fork becomes known, the points of the process are matched once more, by
 * a matching of their own that keeps the history from the beginning. Its rows are thrown away. Its cells say what each
 * address had last; older blocks are of no interest, since no child began before the last one of these points:
 *
 *     cell of the address in the other matching    row 12 --before--> row 5 --before--> row 2
 *     here, if it has a cell                       row 97
 *     here, if it has none                         a number with COPY_BIT
 *
 * That happens once for a process: from then on it keeps its history.
 */
#include "match/match_history.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/diag.h"
#include "base/memory.h"
#include "match/match_points.h"
#include "match/matching.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

struct history *matching_history(const struct matching *matching, uint32_t id)
{
	assert(id & COPY_BIT ? (id & ~COPY_BIT) < matching->copy_count : id < matching->most);
	return id & COPY_BIT ? &matching->copies[id & ~COPY_BIT] : &matching->history[id];
}

uint32_t matching_history_add(struct matching *matching, const struct history *history)
{
	if (matching->copy_count >= (HEAP_NONE & ~COPY_BIT))
		return HEAP_NONE;
	memory_grow(matching->copies, matching->copy_count, matching->copy_capacity);
	matching->copies[matching->copy_count] = *history;
	return (uint32_t)matching->copy_count++ | COPY_BIT;
}

/* ---- matching again ---- */

/* Match the points that *passed has of the wanted processes. */
static int points_again(struct matching *again, const struct trace *trace, const struct heap_passed *passed,
			const bool *is_wanted, struct diag *diag)
{
	struct heap_stream *stream = heap_stream_again(trace, passed, is_wanted);
	struct heap_run run;
	int status;
	while ((status = heap_stream_run(stream, &run, diag)) > 0) {
		const struct heap_position *end = &passed->positions[run.block->thread];
		uint32_t place = run.at.block < end->block ? UINT32_MAX : end->place;
		run.count = place > run.at.place && run.count > place - run.at.place ? place - run.at.place : run.count;
		if (place > run.at.place)
			again->done += matching_run(again, run);
		if (cancel_is_asked(again->how.is_cancelled)) {
			status = diag_fail(diag, ECANCELED, "cancelled");
			break;
		}
	}
	heap_stream_free(stream);
	return status;
}

/* ---- from one matching to the other ---- */

/* Give the cells of a table the newest blocks of their addresses. Return false if there is no number for one. */
static bool cells_take(struct matching *matching, struct live *to, const struct matching *again,
		       const struct live *from)
{
	for (size_t i = 0; from->cells && i < (size_t)1 << from->bits; i++) {
		if (!from->cells[i].address)
			continue;
		struct history newest = *matching_history(again, from->cells[i].current);
		struct live_cell *cell = live_add(to, from->cells[i].address);
		newest.before = HEAP_NONE;
		if (cell->current != HEAP_NONE)
			matching->history[cell->current] = newest;
		else
			cell->current = matching_history_add(matching, &newest);
		if (cell->current == HEAP_NONE)
			return false;
	}
	return true;
}

static bool process_take(struct matching *matching, const struct matching *again, uint32_t id)
{
	struct matching_process *process = &matching->processes[id];
	const struct matching_process *other = &again->processes[id];
	bool is_good = cells_take(matching, &process->live, again, &other->live) &&
		       cells_take(matching, &process->heapless, again, &other->heapless);
	for (uint32_t heap = process->first_heap; matching->annotated && heap != TRACE_NONE && is_good;
	     heap = matching->next_heap[heap])
		is_good = cells_take(matching, &matching->annotated[heap], again, &again->annotated[heap]);
	process->lacks_history = !is_good;
	return is_good;
}

/* Return by process whether it lacks its history, NULL if none does. */
static bool *processes_find(const struct matching *matching)
{
	bool *is_wanted = memory_zeroed((size_t)matching->known.processes + 1, sizeof(*is_wanted)), is_any = false;
	for (uint32_t i = 0; i < matching->known.processes; i++)
		is_any |= is_wanted[i] = matching->processes[i].lacks_history;
	if (is_any)
		return is_wanted;
	free(is_wanted);
	return NULL;
}

int matching_history_make(struct matching *matching, const struct trace *trace, struct diag *diag)
{
	bool *is_wanted = processes_find(matching);
	if (!is_wanted)
		return 0;
	const struct heap_build nowhere = {.fd = open("/dev/null", O_RDWR | O_CLOEXEC),
					   .is_cancelled = matching->how.is_cancelled};
	struct matching *again = matching_new(&nowhere);
	int error = matching_read(again, trace, diag);
	again->is_by_points = true;
	again->until_ns = INT64_MAX;
	error = error ? error : points_again(again, trace, &matching->passed, is_wanted, diag);
	for (uint32_t i = 0; i < matching->known.processes && !error; i++)
		if (is_wanted[i] && !process_take(matching, again, i))
			error = diag_fail(diag, EFBIG, "too many blocks of processes that were forked");
	matching_free(again);
	free(is_wanted);
	return error;
}
