/* SPDX-License-Identifier: MIT */
#include "dx/model/event_sequence.h"

#include <assert.h>
#include <stdlib.h>

#include "base/order.h"
#include "dx/model/event_reader.h"
#include "dx/model/objects_heap.h"
#include "trace/gap_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* Calls with other flags are in Heap(false) only. */
#define FLAGS_DOCUMENTED UINT64_C(0x4001d)

enum { EVENTS_PROCESS, EVENTS_NESTED, EVENTS_ARGUMENTS };

struct timed_gap {
	int64_t from_ns;
	uint32_t number;
};

struct events_state {
	struct dx_event_reader *reader;
	struct dx_event event; /* behind the gaps that are not shown yet */
	const struct timed_gap *gaps;
	uint32_t gap_count, next; /* next: the first gap that is not shown yet */
	bool has_event;
};

COMPARE_BY_TWO(gap_order, struct timed_gap, from_ns, number)

/* The gaps in the order of their times. */
static void gaps_sort(struct dx_query *query, struct dx_iterator *iterator, struct events_state *state)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	struct timed_gap *gaps = dx_new(iterator->home, struct timed_gap, (size_t)dictionary->gap_count + 1);
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		gaps[i] = (struct timed_gap){dictionary->gaps[i].from_ns, i};
	qsort(gaps, dictionary->gap_count, sizeof(*gaps), gap_order);
	state->gaps = gaps;
	state->gap_count = dictionary->gap_count;
}

static void events_open(struct dx_query *query, struct dx_iterator *iterator)
{
	struct events_state *state = iterator->state;
	state->reader = dx_event_reader_new(query->session->trace);
	gaps_sort(query, iterator, state);
}

static void events_close(void *context)
{
	struct events_state *state = context;
	dx_event_reader_free(state->reader);
}

static bool is_wanted(struct dx_query *query, const struct dx_sequence *sequence, const struct dx_event *event)
{
	uint64_t flags;
	if (sequence->arguments[EVENTS_PROCESS].number != TRACE_NONE &&
	    sequence->arguments[EVENTS_PROCESS].number != event->row.process)
		return false;
	return sequence->arguments[EVENTS_NESTED].truth || !dx_event_flags(query, event, &flags) ||
	       !(flags & ~FLAGS_DOCUMENTED);
}

/* Return how many events the gap has, if it is one of the process. */
static uint64_t gap_count(const struct trace_gap *gap, uint32_t process)
{
	uint64_t count = 0;
	for (int kind = 0; kind < EVENT_KIND_COUNT && (process == TRACE_NONE || process == gap->process); kind++)
		count += gap->count[kind];
	return count;
}

bool dx_events_have_gaps(const struct dx_query *query, uint32_t process)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	uint64_t count = 0;
	for (uint32_t i = 0; i < dictionary->gap_count && !count; i++)
		count = gap_count(&dictionary->gaps[i], process);
	return count;
}

/* A gap that lies before the next event, as an error without an index. */
static bool gap_next(struct dx_query *query, struct dx_iterator *iterator, struct events_state *state,
		     struct dx_element *element)
{
	uint32_t process = (uint32_t)iterator->sequence->arguments[EVENTS_PROCESS].number;
	while (state->next < state->gap_count) {
		const struct trace_gap *gap = &query->session->dictionary->gaps[state->gaps[state->next].number];
		uint64_t count = gap_count(gap, process);
		if (state->has_event && gap->from_ns > state->event.row.time_ns)
			return false;
		state->next++;
		if (!count)
			continue;
		element->value = dx_error(query, "gap: %llu events", (unsigned long long)count);
		element->index.is_nothing = true;
		return true;
	}
	return false;
}

static void event_read(struct dx_query *query, struct dx_iterator *iterator, struct events_state *state)
{
	struct diag diag = {""};
	int status;
	assert(state->reader && !state->has_event);
	while ((status = dx_event_reader_next(state->reader, &state->event, &diag)) > 0) {
		if (is_wanted(query, iterator->sequence, &state->event)) {
			state->has_event = true;
			return;
		}
		if (!dx_step(query, "Heap", iterator->sequence->column))
			return;
	}
	if (status < 0)
		dx_stop(query, iterator->sequence->column, "%s", diag.text);
}

static bool events_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct events_state *state = iterator->state;
	if (!state->has_event)
		event_read(query, iterator, state);
	if (state->next < state->gap_count && gap_next(query, iterator, state, element))
		return true;
	if (!state->has_event)
		return false;
	state->has_event = false;
	struct dx_event *kept = dx_new(query->arena, struct dx_event, 1);
	*kept = state->event;
	*element = (struct dx_element){dx_object(&dx_heap_class, kept), dx_number(kept->number)};
	return true;
}

static const struct dx_operator events_operator = {.name = "Heap",
						   .state_bytes = sizeof(struct events_state),
						   .open = events_open,
						   .next = events_next,
						   .close = events_close};

bool dx_events_are(const struct dx_sequence *sequence, uint32_t *process, bool *with_nested)
{
	if (sequence->operation != &events_operator)
		return false;
	*process = (uint32_t)sequence->arguments[EVENTS_PROCESS].number;
	*with_nested = sequence->arguments[EVENTS_NESTED].truth;
	return true;
}

struct dx_value dx_events(struct dx_query *query, uint32_t process, bool with_nested, int column)
{
	struct dx_sequence *sequence = dx_sequence_new(query, &events_operator, NULL, column);
	query->session->uses |= 1u << DX_USE_CALLS;
	sequence->argument_count = EVENTS_ARGUMENTS;
	sequence->arguments[EVENTS_PROCESS] = dx_number(process);
	sequence->arguments[EVENTS_NESTED] = dx_bool(with_nested);
	return dx_sequence_value(sequence);
}
