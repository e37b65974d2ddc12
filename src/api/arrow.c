/* SPDX-License-Identifier: MIT */
/* Streams of rows for other programs, through Arrow's C stream interface. */
#include "api/arrow_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { ROWS_DEFAULT = 1 << 16, ROWS_MOST = 1 << 24, TEXT_MOST = 16 << 20 };

API_INIT(xheap_query, .table = XHEAP_TABLE_ALLOCATION)

static const char *const table_names[XHEAP_TABLE_COUNT] = {"allocation", "event",   "stack", "frame", "function",
							   "thread",     "process", "heap",  "image"};

struct arrow_stream {
	struct arrow_source source;
	uint32_t table, batch_rows;
	struct arrow_column *columns;
	bool is_last; /* the source has no more rows */
	int over;     /* XHEAP_END; or the errno, negative, of all further calls */
	xheap_error error;
};

/* ---- one call ---- */

struct stream_call {
	struct arrow_stream *stream;
	struct ArrowSchema *schema;
	struct ArrowArray *array;
};

/* What a call of the stream returns: an errno, whose reason get_last_error() has. */
static int stream_run(struct arrow_stream *stream, bool needs_lock, int (*work)(void *context, struct diag *diag),
		      struct stream_call *call)
{
	struct xheap_trace *trace = stream->source.trace;
	int status = needs_lock ? api_run_locked(trace, &stream->error, work, call)
				: api_run(&trace->callbacks, &stream->error, work, call);
	if (status >= 0)
		return 0;
	return stream->error.system_error ? stream->error.system_error : EIO;
}

static int schema_work(void *context, struct diag *diag)
{
	struct stream_call *call = context;
	const struct arrow_stream *stream = call->stream;
	const struct trace_dictionary *dictionary = trace_dictionary(stream->source.trace->trace);
	char start[32];
	(void)diag;
	snprintf(start, sizeof(start), "%" PRId64, dictionary->start_realtime_ns);
	const char *facts[] = {"xheap.table", table_names[stream->table], "xheap.start_realtime_ns", start};
	arrow_schema_make(call->schema, stream->source.fields, stream->source.field_count, facts, 2);
	return 0;
}

static int stream_get_schema(struct ArrowArrayStream *given, struct ArrowSchema *out)
{
	struct stream_call call = {.stream = given->private_data, .schema = out};
	*out = (struct ArrowSchema){.release = NULL};
	return stream_run(call.stream, false, schema_work, &call);
}

static bool has_much_text(const struct arrow_stream *stream)
{
	for (uint32_t i = 0; i < stream->source.field_count; i++)
		if (stream->columns[i].text_bytes > TEXT_MOST)
			return true;
	return false;
}

static void columns_begin(struct arrow_stream *stream)
{
	for (uint32_t i = 0; i < stream->source.field_count; i++)
		arrow_column_begin(&stream->columns[i], &stream->source.fields[i], stream->batch_rows);
}

static void columns_end(struct arrow_stream *stream)
{
	for (uint32_t i = 0; i < stream->source.field_count; i++)
		arrow_column_end(&stream->columns[i]);
}

static int next_work(void *context, struct diag *diag)
{
	struct stream_call *call = context;
	struct arrow_stream *stream = call->stream;
	struct arrow_source *source = &stream->source;
	int64_t added = 1;
	uint32_t rows = 0;
	if (stream->over > 0)
		return diag_fail(diag, EINVAL, "the stream was read to its end: its rows can be read once");
	if (stream->over)
		return diag_fail(diag, -stream->over, "no more is read after an error");
	/* So it is if this is given up in its middle. */
	stream->over = -ENOMEM;
	columns_begin(stream);
	while (rows < stream->batch_rows && added > 0 && !stream->is_last && !has_much_text(stream)) {
		added = source->next(source, stream->columns, stream->batch_rows - rows, diag);
		rows += added > 0 ? (uint32_t)added : 0;
		stream->is_last = added <= 0;
	}
	if (rows && added >= 0)
		arrow_array_make(call->array, stream->columns, source->field_count);
	columns_end(stream);
	stream->over = added < 0 ? (int)added : rows ? 0 : XHEAP_END;
	return added < 0 ? (int)added : 0;
}

static int stream_get_next(struct ArrowArrayStream *given, struct ArrowArray *out)
{
	struct stream_call call = {.stream = given->private_data, .array = out};
	*out = (struct ArrowArray){.release = NULL};
	return stream_run(call.stream, call.stream->source.needs_lock, next_work, &call);
}

static const char *stream_get_last_error(struct ArrowArrayStream *given)
{
	const struct arrow_stream *stream = given->private_data;
	return *stream->error.text ? stream->error.text : NULL;
}

static void stream_free(void *context)
{
	struct arrow_stream *stream = context;
	struct arrow_source *source = &stream->source;
	if (source->end)
		source->end(source);
	for (uint32_t i = 0; i < source->field_count; i++)
		arrow_field_fini(&source->fields[i]);
	free(source->fields);
	free(stream->columns);
	api_trace_release(source->trace);
	free(stream);
}

static void stream_release(struct ArrowArrayStream *given)
{
	api_end(stream_free, given->private_data);
	given->release = NULL;
}

/* ---- opening ---- */

struct query_opening {
	struct xheap_trace *trace;
	const xheap_query *given;
	struct arrow_stream *stream;
};

static int query_check(const xheap_query *query, struct diag *diag)
{
	if (query->table >= XHEAP_TABLE_COUNT)
		return diag_fail(diag, EINVAL, "xheap_query: there is no table %u", query->table);
	if (query->batch_rows > ROWS_MOST)
		return diag_fail(diag, EINVAL, "xheap_query: batch_rows is more than %d", ROWS_MOST);
	if (query->column_count && !query->columns)
		return diag_fail(diag, EINVAL, "xheap_query: columns has a count and no names");
	for (size_t i = 0; i < query->column_count; i++)
		if (!query->columns[i])
			return diag_fail(diag, EINVAL, "xheap_query: column %zu is NULL", i);
	if (query->plan && query->column_count)
		return diag_fail(diag, EINVAL, "xheap_query: the columns are those of the plan; name none");
	return 0;
}

static int open_work(void *context, struct diag *diag)
{
	struct query_opening *opening = context;
	xheap_query query;
	xheap_query_init(&query, sizeof(query));
	struct arrow_stream *stream = opening->stream = memory_zeroed(1, sizeof(*stream));
	stream->source.trace = opening->trace;
	api_trace_hold(opening->trace);
	int error = api_take(&query, sizeof(query), opening->given, "xheap_query", diag);
	error = error ? error : query_check(&query, diag);
	if (error)
		return error;
	bool has_plan = query.plan || query.table <= XHEAP_TABLE_EVENT;
	stream->batch_rows = query.batch_rows ? query.batch_rows : ROWS_DEFAULT;
	error = has_plan ? arrow_rows_begin(&stream->source, &query, diag)
			 : arrow_lists_begin(&stream->source, &query, diag);
	stream->table = query.table;
	stream->columns = memory_zeroed(stream->source.field_count, sizeof(*stream->columns));
	return error;
}

API int xheap_query_arrow(xheap_trace *trace, const xheap_query *query, struct ArrowArrayStream *stream,
			  xheap_error *error)
{
	struct query_opening opening = {.trace = trace, .given = query};
	int status = api_run_locked(trace, error, open_work, &opening);
	*stream = (struct ArrowArrayStream){.release = NULL};
	if (status == XHEAP_OK)
		*stream = (struct ArrowArrayStream){.get_schema = stream_get_schema,
						    .get_next = stream_get_next,
						    .get_last_error = stream_get_last_error,
						    .release = stream_release,
						    .private_data = opening.stream};
	else if (opening.stream)
		api_end(stream_free, opening.stream);
	return status;
}
