/* SPDX-License-Identifier: MIT */
/*
 * What rows through Arrow's C stream interface cost: reads all allocations (or, with the first word `event`, all events)
 * of a trace, whose index should be there, and prints how many rows a second of processor time gave.
 *
 *     arrow_bench TRACE [allocation|event] [COLUMN...]     without columns: id, size, birth_ns, end_ns, thread, stack_id
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "xheap/xheap.h"

static const char *const usual[] = {"id", "size", "birth_ns", "end_ns", "thread", "stack_id"};

static double processor_s(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int fail(const char *what, const char *reason)
{
	fprintf(stderr, "arrow_bench: %s: %s\n", what, reason);
	return 2;
}

static int read_all(struct ArrowArrayStream *stream, uint64_t *rows, uint64_t *batches)
{
	struct ArrowArray batch;
	int error;
	while (!(error = stream->get_next(stream, &batch)) && batch.release) {
		*rows += (uint64_t)batch.length;
		++*batches;
		batch.release(&batch);
	}
	return error;
}

int main(int count, char **words)
{
	xheap_trace *trace;
	xheap_query query;
	xheap_error error;
	struct ArrowArrayStream stream;
	uint64_t rows = 0, batches = 0;
	if (count < 2)
		return fail("usage", "arrow_bench TRACE [allocation|event] [COLUMN...]");
	bool is_event = count > 2 && !strcmp(words[2], "event");
	xheap_query_init(&query, sizeof(query));
	query.table = is_event ? XHEAP_TABLE_EVENT : XHEAP_TABLE_ALLOCATION;
	query.columns = count > 3 ? (const char *const *)words + 3 : usual;
	query.column_count = count > 3 ? (size_t)count - 3 : sizeof(usual) / sizeof(*usual);
	if (xheap_trace_open(words[1], NULL, &trace, &error) != XHEAP_OK ||
	    xheap_query_arrow(trace, &query, &stream, &error) != XHEAP_OK)
		return fail(words[1], error.text);
	double begin_s = processor_s();
	if (read_all(&stream, &rows, &batches))
		return fail(words[1], stream.get_last_error(&stream));
	double spent_s = processor_s() - begin_s;
	stream.release(&stream);
	xheap_trace_close(trace);
	printf("%" PRIu64 " rows in %" PRIu64 " batches, %.3f s of processor time, %.1f million rows a second\n", rows,
	       batches, spent_s, (double)rows / spent_s / 1e6);
	return 0;
}
