/* SPDX-License-Identifier: MIT */
#include "dx/model/positions.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "dx/model/objects.h"
#include "match/point_stream.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { NS_PER_S = 1000000000, PERCENT = 100 };

/* ---- members ---- */

static void get_sequence(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	(void)query;
	*value = dx_signed(object->sequence_ns);
	if (object->sequence_ns == INT64_MAX)
		*value = dx_number(UINT64_C(0xFFFFFFFFFFFFFFFE));
}

DX_GETTER_IF(get_steps, object->step != UINT32_MAX, dx_number(object->step))

static double percent_of(const struct dx_query *query, const struct dx_value *position)
{
	int64_t duration_ns = query->session->dictionary->duration_ns;
	if (position->sequence_ns == INT64_MAX)
		return PERCENT;
	return duration_ns > 0 ? PERCENT * (double)position->sequence_ns / (double)duration_ns : 0;
}

DX_GETTER(get_percent, dx_real(percent_of(query, object)))
DX_GETTER(get_exact, dx_bool(!object->is_estimated))

static const struct dx_member position_members[] = {
	{"Sequence", DX_NUMBER, 0, get_sequence, NULL, "nanoseconds from the trace's start"},
	{"Steps", DX_NUMBER, 0, get_steps, NULL,
	 "the place, from 1, among the points of that nanosecond; 0x0: before all of them; absent: behind all of them"},
	{"Percent", DX_REAL, 0, get_percent, NULL, "the part of the trace that lies before"},
	{"IsExact", DX_BOOL, DX_MEMBER_EXTRA, get_exact, NULL,
	 "false: the point of the call less or plus its duration, which is rounded"},
	{0},
};

const struct dx_class dx_position_class = {"Position", "an instant of a trace", .members = position_members,
					   .shows_methods = true};

/* ---- ranges ---- */

DX_GETTER(get_min, ((const struct dx_position_range *)object->data)->min)
DX_GETTER(get_max, ((const struct dx_position_range *)object->data)->max)

static const struct dx_member range_members[] = {
	{"MinPosition", DX_POSITION, 0, get_min, &dx_position_class, "the first position"},
	{"MaxPosition", DX_POSITION, 0, get_max, &dx_position_class, "the last position"},
	{0},
};

static const char *range_show(struct dx_query *query, const struct dx_value *object)
{
	const struct dx_position_range *range = object->data;
	return dx_format(query->arena, "[%s, %s]", dx_position_text(query->arena, &range->min),
			 dx_position_text(query->arena, &range->max));
}

const struct dx_class dx_position_range_class = {"PositionRange", "the time from one position to another",
						 range_members, sizeof(struct dx_position_range), .show = range_show};

struct dx_value dx_position_range(struct dx_query *query, struct dx_value min, struct dx_value max)
{
	assert(min.kind == DX_POSITION && max.kind == DX_POSITION);
	struct dx_position_range *range = dx_new(query->arena, struct dx_position_range, 1);
	*range = (struct dx_position_range){min, max};
	return dx_object(&dx_position_range_class, range);
}

/* ---- the current position ---- */

/* Whether some block begins or ends at the point. */
static bool has_effect(const struct heap_point *at)
{
	return at->kind != HEAP_POINT_NONE || at->block->kind[at->row] == EVENT_DESTROY;
}

/* Find the last step of a nanosecond at which a block begins or ends; 0: there is none. Only the event blocks around it
   are read. */
static int last_step_find(uint32_t *last, const struct trace *trace, int64_t time_ns, struct diag *diag)
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

/* A block that ends with its process is still there at this position. */
static struct dx_value process_end(struct dx_query *query, uint32_t process)
{
	struct dx_session *session = query->session;
	uint32_t last;
	struct diag diag = {""};
	if (!trace_process_end_is_known(&session->dictionary->processes[process]) || !dx_session_table(session))
		return dx_position(INT64_MAX, 0);
	int64_t end_ns = session->table->processes[process].end_ns;
	if (last_step_find(&last, session->trace, end_ns, &diag))
		dx_stop(query, -1, "%s", diag.text);
	return dx_position(end_ns, last ? last + 1 : 0);
}

struct dx_value dx_position_current(struct dx_query *query, uint32_t process)
{
	if (query->session->position.kind == DX_POSITION)
		return query->session->position;
	return process == TRACE_NONE ? dx_position(INT64_MAX, 0) : process_end(query, process);
}

/* ---- methods ---- */

void dx_position_seek(struct dx_query *query, const struct dx_value *position)
{
	assert(position->kind == DX_POSITION);
	struct dx_session *session = query->session;
	bool is_behind = position->sequence_ns > session->dictionary->duration_ns;
	session->position = is_behind ? dx_position(INT64_MAX, 0) : *position;
	if (session->out)
		sink_format(session->out, "Position: %s (%.2f %%)\n",
			    dx_position_text(query->arena, &session->position), percent_of(query, &session->position));
}

/* Set the number of "50" or "50%"; false: the text is none. */
static bool percent_parse(const char *text, double *percent)
{
	char *end;
	*percent = strtod(text, &end);
	return end > text && isdigit((unsigned char)*text) && (!*end || !strcmp(end, "%"));
}

bool dx_position_take(struct dx_query *query, const struct dx_value *argument, struct dx_value *position)
{
	int64_t duration_ns = query->session->dictionary->duration_ns, time_ns;
	bool is_text = argument->kind == DX_TEXT, is_number = argument->kind == DX_NUMBER || argument->kind == DX_REAL;
	const char *name;
	double percent = is_number ? dx_real_of(argument) : 0;
	*position = *argument;
	if (argument->kind == DX_POSITION || (is_text && dx_position_parse(argument->text, position)))
		return true;
	is_number |= is_text && percent_parse(argument->text, &percent);
	if (is_number && percent >= 0 && percent <= PERCENT)
		*position = percent < PERCENT ? dx_position((int64_t)((double)duration_ns * percent / PERCENT), 0)
					      : dx_position(INT64_MAX, 0);
	else if (is_text && !is_number && text_parse_time(argument->text, &time_ns))
		*position = time_ns < duration_ns ? dx_position(time_ns, UINT32_MAX) : dx_position(INT64_MAX, 0);
	else {
		name = is_text ? argument->text : dx_format(query->arena, "%g", percent);
		*position = dx_error(query,
				     "%s is no position: SEQUENCE:STEP in hexadecimal, a time such as 10ms, or a "
				     "percentage from 0 to 100",
				     name);
	}
	return position->kind == DX_POSITION;
}

static void call_seek(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	dx_position_seek(query, &call->receiver);
	*result = (struct dx_value){.kind = DX_ABSENT};
}

struct dx_value dx_position_system_time(struct dx_query *query, const struct dx_value *position)
{
	char text[64] = "";
	int64_t at_ns, start_ns = query->session->dictionary->start_realtime_ns;
	int64_t sequence_ns =
		position->sequence_ns == INT64_MAX ? query->session->dictionary->duration_ns : position->sequence_ns;
	struct tm tm;
	if (__builtin_add_overflow(start_ns, sequence_ns, &at_ns))
		return dx_error(query, "the time is beyond the calendar");
	time_t seconds = at_ns / NS_PER_S - (at_ns % NS_PER_S < 0);
	int64_t rest_ns = at_ns - (int64_t)seconds * NS_PER_S;
	if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		return dx_error(query, "the time is beyond the calendar");
	return dx_text(dx_format(query->arena, "%s.%09" PRId64 " UTC", text, rest_ns));
}

static void call_system_time(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	*result = dx_position_system_time(query, &call->receiver);
}

const struct dx_method dx_methods_of_positions[] = {
	{"SeekTo", DX_OF_POSITION, NULL, "", DX_RESULT_KIND, DX_ABSENT, NULL, NULL, call_seek, "",
	 "makes this the current position", NULL},
	{"ToSystemTime", DX_OF_POSITION, NULL, "", DX_RESULT_KIND, DX_TEXT, NULL, NULL, call_system_time, "",
	 "the approximate time of day, UTC", NULL},
	{0},
};
