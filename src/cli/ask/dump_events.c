/* SPDX-License-Identifier: MIT */
/* Every heap call, in the order of time. */
#include "cli/ask/dump.h"
#include "cli/ask/dump_rows.h"
#include "match/point_stream.h"

/* Rows keep the numbers that they have without a range: what lies before it is counted. */
static int write_events(struct dump *dump, struct diag *diag)
{
	struct heap_stream *stream =
		heap_stream_new(dump->trace, HEAP_ORDER_EVENTS, dump->range.from_ns, dump->range.to_ns);
	struct heap_point point;
	int status;
	dump->row.listed.id = heap_stream_skipped(stream);
	while ((status = heap_stream_next(stream, &point, diag)) > 0 && !dump->out->error) {
		if (point.time_ns > dump->range.to_ns)
			break;
		dump->row.listed.event = column_event_at(point.block, point.row);
		if (point.time_ns >= dump->range.from_ns)
			dump_write_row(dump);
		dump->row.listed.id++;
	}
	heap_stream_free(stream);
	return status < 0 ? status : 0;
}

const struct dump_subject dump_events = DUMP_LISTED_SUBJECT(COLUMNS_OF_EVENTS, write_events);
