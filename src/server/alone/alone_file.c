/* SPDX-License-Identifier: MIT */
#include "server/alone/alone_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "server/answer/cells_answer.h"
#include "server/answer/parts.h"
#include "server/answer/question.h"
#include "server/answer/trace_answer.h"
#include "server/page/page_files.h"

enum {
	INTERVALS = 256,
	INTERVALS_LEAST = 16,
	GZIP_WINDOW = 15 + 16 /* zlib's number for its largest window, and for the format of gzip */
};

/* Bytes under construction. */
struct alone_data {
	const struct alone_plan *plan;
	const struct analysis_caller *caller;
	struct shown_trace *traces; /* by path */
	unsigned intervals;
	struct sink plain;
	char *packed; /* gzip of it */
	size_t packed_size;
};

/* ---- the data; viewer/README.md has its layout ---- */

/* What the reader of the file has to know. */
static void left_out_write(const struct alone_data *data, char *text, size_t size)
{
	int length =
		snprintf(text, size, "this file has neither finer times nor the stacks that freed; xheap view has");
	if (data->intervals < INTERVALS)
		snprintf(text + length, size - (size_t)length,
			 "; it has %u intervals of time in place of %d, to be at most %s", data->intervals, INTERVALS,
			 text_bytes(data->plan->most_bytes).data);
}

static int trace_add(struct alone_data *data, struct shown_trace *trace, struct diag *diag)
{
	const struct alone_plan *plan = data->plan;
	const struct question question = {.intervals = data->intervals};
	char left_out[200];
	struct sink facts, cells;
	sink_to_memory(&facts);
	sink_to_memory(&cells);
	left_out_write(data, left_out, sizeof(left_out));
	const struct trace_answer_plan about = {plan->paths, plan->path_count, plan->runs, left_out};
	int error = trace_answer_write(trace, &about, &facts, data->caller, diag);
	error = error ? error : cells_answer_write(trace, &question, &cells, data->caller, diag);
	parts_add(&data->plain, &facts, &cells);
	sink_end(&facts);
	sink_end(&cells);
	return error;
}

static int plain_make(struct alone_data *data, struct diag *diag)
{
	int error = 0;
	data->plain.used = 0;
	parts_begin(&data->plain, data->plan->path_count);
	for (unsigned i = 0; i < data->plan->path_count && !error; i++)
		error = trace_add(data, &data->traces[i], diag);
	return error;
}

static int pack(struct alone_data *data, struct diag *diag)
{
	z_stream stream = {.next_in = (Bytef *)data->plain.buffer};
	if (data->plain.used > UINT32_MAX || deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
							  MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return diag_fail(diag, EFBIG, "the data cannot be packed");
	const uLong bound = deflateBound(&stream, data->plain.used);
	data->packed = memory_resize(data->packed, bound, 1);
	stream.avail_in = (uInt)data->plain.used;
	stream.next_out = (Bytef *)data->packed;
	stream.avail_out = (uInt)bound;
	int status = deflate(&stream, Z_FINISH);
	data->packed_size = stream.total_out;
	deflateEnd(&stream);
	return status == Z_STREAM_END ? 0 : diag_fail(diag, EFBIG, "the data cannot be packed");
}

/* ---- the file ---- */

static const struct page_text *script(void)
{
	return &page_file_find("main.js")->text;
}

static uint64_t file_size(const struct alone_data *data)
{
	return page_alone.head.size + page_alone.middle.size + page_alone.end.size + script()->size +
	       (data->packed_size + 2) / 3 * 4;
}

static void base64_write(struct sink *out, const char *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < size; i += 3) {
		unsigned number = 0;
		for (size_t k = i; k < i + 3; k++)
			number = number << 8 | (k < size ? (unsigned char)bytes[k] : 0);
		for (size_t k = 0; k < 4; k++)
			sink_put(out, i + k > size ? '=' : digits[number >> (18 - 6 * k) & 63]);
	}
}

static void text_write(struct sink *out, const struct page_text *text)
{
	sink_bytes(out, text->bytes, text->size);
}

static void file_write(const struct alone_data *data, struct sink *out)
{
	text_write(out, &page_alone.head);
	base64_write(out, data->packed, data->packed_size);
	text_write(out, &page_alone.middle);
	text_write(out, script());
	text_write(out, &page_alone.end);
}

/* Make the data with as many intervals as the file has room for. */
static int data_make(struct alone_data *data, struct diag *diag)
{
	for (data->intervals = INTERVALS;; data->intervals /= 2) {
		int error = plain_make(data, diag);
		error = error ? error : pack(data, diag);
		if (error || file_size(data) <= data->plan->most_bytes)
			return error;
		if (data->intervals == INTERVALS_LEAST)
			return diag_fail(diag, EFBIG, "the file would have %s, more than the %s that it may have",
					 text_bytes(file_size(data)).data, text_bytes(data->plan->most_bytes).data);
	}
}

/* All names are read then. */
static int output_check(const struct alone_data *data, struct diag *diag)
{
	for (unsigned i = 0; i < data->plan->path_count && data->plan->output; i++)
		if (symbols_read_file(opened_trace_symbols(data->traces[i].opened), data->plan->output))
			return diag_fail(diag, EINVAL, "the output is one of the files that are read");
	return 0;
}

int alone_file_write(const struct alone_plan *plan, struct sink *out, const struct analysis_caller *caller,
		     struct diag *diag)
{
	struct alone_data data = {.plan = plan, .caller = caller};
	int error = 0;
	data.traces = memory_zeroed(plan->path_count, sizeof(*data.traces));
	sink_to_memory(&data.plain);
	for (unsigned i = 0; i < plan->path_count && !error; i++) {
		data.traces[i] = (struct shown_trace){.path = plan->paths[i], .options = plan->options};
		error = shown_trace_open(&data.traces[i], caller, diag);
		if (!error)
			shown_trace_tell_damage(&data.traces[i], caller);
	}
	error = error ? error : data_make(&data, diag);
	error = error ? error : output_check(&data, diag);
	if (!error)
		file_write(&data, out);
	for (unsigned i = 0; i < plan->path_count; i++)
		shown_trace_close(&data.traces[i]);
	sink_end(&data.plain);
	free(data.packed);
	free(data.traces);
	return error;
}
