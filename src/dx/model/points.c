/* SPDX-License-Identifier: MIT */
#include "dx/model/points.h"

#include "match/point_stream.h"

/* Whether some block begins or ends at the point. */
static bool has_effect(const struct heap_point *at)
{
	return at->kind != HEAP_POINT_NONE || at->block->kind[at->row] == EVENT_DESTROY;
}

int dx_last_step(uint32_t *last, const struct trace *trace, int64_t time_ns, struct diag *diag)
{
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_POINTS, time_ns, time_ns);
	struct heap_point at;
	uint32_t step = 0;
	int status;
	*last = 0;
	while ((status = heap_stream_next(stream, &at, diag)) > 0 && at.time_ns <= time_ns) {
		if (at.time_ns < time_ns)
			continue;
		step++;
		*last = has_effect(&at) ? step : *last;
	}
	heap_stream_free(stream);
	return status < 0 ? status : 0;
}

struct dx_point dx_point_of(const struct trace_dictionary *dictionary, const struct heap_allocation *row,
			    const struct heap_details *details, bool is_end)
{
	return (struct dx_point){.time_ns = is_end ? row->end_ns : row->birth_ns,
				 .address = details->address,
				 .process = dictionary->threads[row->thread].process,
				 .thread = is_end ? details->end_thread : row->thread,
				 .is_end = is_end,
				 .is_destroy = is_end && row->end == HEAP_END_DESTROY};
}
