/* SPDX-License-Identifier: MIT */
/*
 * A program that uses xheap.h: api MODE TRACE [MORE...]. It prints what it reads, for api/library.py to compare, or checks by
 * itself and prints how many of its expectations failed.
 */
#include <xheap/xheap.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed;

#define EXPECT(is_so) ((is_so) ? (void)0 : (void)(printf("line %d: %s\n", __LINE__, #is_so), failed++))

static int as_printed(int status, const xheap_error *error)
{
	if (status < 0)
		printf("%s: %s\n", xheap_status_name(status), error->text);
	return status;
}

static xheap_trace *open_trace(const char *path)
{
	xheap_trace *trace;
	xheap_error error;
	if (as_printed(xheap_trace_open(path, NULL, &trace, &error), &error) != XHEAP_OK)
		exit(3);
	return trace;
}

/* ---- events and allocations as rows ---- */

static void print_address(uint64_t address)
{
	if (address)
		printf("0x%" PRIx64, address);
	putchar(',');
}

static void print_event(const xheap_trace *trace, const xheap_event *event)
{
	const xheap_heap *heap = xheap_trace_get_heap(trace, event->heap);
	printf("%" PRId64 ",%" PRId64 ",%u,%u,%u,", event->number == UINT64_MAX ? -1 : (int64_t)event->number,
	       event->time_ns, event->process, event->pid, event->tid);
	printf("%s,%s,", xheap_kind_name(event->kind), xheap_trace_get_function(trace, event->function)->name);
	print_address(heap ? heap->handle : 0);
	print_address(event->address);
	print_address(event->previous_address);
	printf("%" PRIu64 ",%" PRIu64 ",%u,%d\n", event->size, event->usable_size,
	       event->flags & XHEAP_EVENT_NO_STACK ? 0 : event->stack, event->result);
}

static void print_event_batch(const xheap_trace *trace, const xheap_event_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		const xheap_event event = {.number = batch->first_number == UINT64_MAX ? UINT64_MAX
										       : batch->first_number + i,
					   .time_ns = batch->time_ns[i],
					   .kind = batch->kind[i],
					   .flags = batch->flags[i],
					   .process = batch->process,
					   .heap = batch->heap[i],
					   .function = batch->function[i],
					   .pid = xheap_trace_get_process(trace, batch->process)->pid,
					   .tid = xheap_trace_get_thread(trace, batch->thread)->tid,
					   .stack = batch->stack[i],
					   .result = batch->result[i],
					   .address = batch->address[i],
					   .previous_address = batch->previous_address[i],
					   .size = batch->size[i],
					   .usable_size = batch->usable_size[i]};
		print_event(trace, &event);
	}
}

/* events TRACE time|file FROM TO SINGLES BATCHES: so many single ones, then so many batches, and again. */
static int print_events(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_events_options options;
	xheap_events *events;
	const xheap_event *event;
	const xheap_event_batch *batch;
	xheap_error error;
	int status;
	xheap_events_options_init(&options, sizeof(options));
	options.order = !strcmp(words[0], "file") ? XHEAP_ORDER_FILE : XHEAP_ORDER_TIME;
	options.from_ns = strtoll(words[1], NULL, 10);
	options.to_ns = strtoll(words[2], NULL, 10);
	int singles = atoi(words[3]), batches = atoi(words[4]);
	status = as_printed(xheap_events_open(trace, &options, &events, &error), &error);
	/* What is open keeps it. */
	xheap_trace_close(trace);
	while (status == XHEAP_OK) {
		for (int i = 0; i < singles && (status = xheap_events_next(events, &event, &error)) == XHEAP_OK; i++)
			print_event(trace, event);
		for (int i = 0; i < batches && status == XHEAP_OK &&
				(status = xheap_events_next_batch(events, &batch, &error)) == XHEAP_OK;
		     i++)
			print_event_batch(trace, batch);
	}
	as_printed(status, &error);
	EXPECT(status < 0 || xheap_events_next(events, &event, &error) == XHEAP_END);
	xheap_events_close(events);
	return failed > 0;
}

static void print_allocation(const xheap_trace *trace, const xheap_allocation *row)
{
	const xheap_thread *end = xheap_trace_get_thread(trace, row->end_thread);
	/* A block's usable size is its size where the allocator could not be asked; no allocator rounds up by
	   gigabytes. */
	EXPECT(row->usable_size >= row->size && row->usable_size - row->size < UINT32_MAX);
	printf("%u,%u,", row->number, xheap_trace_get_thread(trace, row->thread)->tid);
	print_address(row->address);
	printf("%" PRIu64 ",%" PRId64 ",%" PRId64 ",%u,%d,%u,%u,%" PRId64 "\n", row->size, row->birth_ns,
	       row->end == XHEAP_END_OPEN ? -1 : row->end_ns, row->end, end ? (int)end->tid : -1, row->stack,
	       row->end_stack, row->previous == XHEAP_NONE ? -1 : (int64_t)row->previous);
}

static void print_allocation_batch(const xheap_trace *trace, const xheap_allocation_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		const xheap_allocation row = {.number = batch->number[i],
					      .end = batch->end[i],
					      .birth_ns = batch->birth_ns[i],
					      .end_ns = batch->end_ns[i],
					      .address = batch->address[i],
					      .size = batch->size[i],
					      .usable_size = batch->usable_size[i],
					      .stack = batch->stack[i],
					      .end_stack = batch->end_stack[i],
					      .thread = batch->thread[i],
					      .end_thread = batch->end_thread[i],
					      .previous = batch->previous[i]};
		EXPECT(batch->weight_count[i] == 1 && batch->weight_bytes[i] == batch->size[i]);
		print_allocation(trace, &row);
	}
}

/* allocations TRACE SIZE_FROM SIZE_TO SINGLES BATCHES [FRAME] */
static int print_allocations(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_filter filter;
	xheap_allocations *allocations;
	const xheap_allocation *row;
	const xheap_allocation_batch *batch;
	xheap_error error;
	xheap_filter_init(&filter, sizeof(filter));
	filter.size_from = strtoull(words[0], NULL, 10);
	filter.size_to = strtoull(words[1], NULL, 10);
	int singles = atoi(words[2]), batches = atoi(words[3]);
	filter.require_frames = (const char *const *)&words[4];
	filter.require_frame_count = words[4] != NULL;
	int status = as_printed(xheap_allocations_open(trace, &filter, &allocations, &error), &error);
	xheap_trace_close(trace);
	while (status == XHEAP_OK) {
		for (int i = 0; i < singles && (status = xheap_allocations_next(allocations, &row, &error)) == XHEAP_OK;
		     i++)
			print_allocation(trace, row);
		for (int i = 0; i < batches && status == XHEAP_OK &&
				(status = xheap_allocations_next_batch(allocations, &batch, &error)) == XHEAP_OK;
		     i++)
			print_allocation_batch(trace, batch);
	}
	as_printed(status, &error);
	EXPECT(status < 0 || xheap_allocations_next(allocations, &row, &error) == XHEAP_END);
	xheap_allocations_close(allocations);
	return failed > 0;
}

/* ---- reports ---- */

static const char *word_or_null(const char *word)
{
	return word && *word ? word : NULL;
}

static void take_report_words(xheap_report_options *options, char **words)
{
	xheap_report_options_init(options, sizeof(*options));
	options->action = word_or_null(words[0]);
	options->sort = word_or_null(words[1]);
	options->by = word_or_null(words[2]);
	options->callers_of = word_or_null(words[3]);
}

/* report TRACE ACTION SORT BY CALLERS text|csv|json SIZE_FROM SIZE_TO */
static int print_report(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_report_options options;
	xheap_report *report;
	xheap_filter filter;
	xheap_error error;
	char *text;
	size_t length;
	uint32_t format = !strcmp(words[4], "text")  ? XHEAP_FORMAT_TEXT
			  : !strcmp(words[4], "csv") ? XHEAP_FORMAT_CSV
						     : XHEAP_FORMAT_JSON;
	take_report_words(&options, words);
	xheap_filter_init(&filter, sizeof(filter));
	filter.size_from = strtoull(words[5], NULL, 10);
	filter.size_to = strtoull(words[6], NULL, 10);
	options.filter = &filter;
	int status = as_printed(xheap_report_make(trace, &options, &report, &error), &error);
	xheap_trace_close(trace);
	if (status == XHEAP_OK &&
	    as_printed(xheap_report_write(report, format, &text, &length, &error), &error) == XHEAP_OK) {
		EXPECT(strlen(text) == length);
		fputs(text, stdout);
		xheap_text_free(text);
	}
	xheap_report_free(report);
	return failed > 0;
}

/* rows TRACE ACTION SORT BY CALLERS: what get_row gives. */
static int print_rows(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_report_options options;
	xheap_report *report;
	xheap_error error;
	const xheap_row *row;
	take_report_words(&options, words);
	if (as_printed(xheap_report_make(trace, &options, &report, &error), &error) != XHEAP_OK)
		return 1;
	for (uint32_t i = 0; (row = xheap_report_get_row(report, i)); i++) {
		const xheap_numbers *numbers = row->numbers;
		printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u,%d,", numbers->total_bytes,
		       numbers->outstanding_count, numbers->peak_bytes, numbers->temporary_count, numbers->open_count,
		       row->depth, row->parent == XHEAP_NONE ? -1 : (int)row->parent);
		for (uint32_t k = 0; k < row->extra_count; k++)
			printf("%s=%" PRIu64 ",", row->extra_names[k], row->extra[k]);
		printf("%s,%s\n", row->by, row->text);
		EXPECT(row->parent == XHEAP_NONE
			       ? row->depth == 0
			       : row->parent < i && xheap_report_get_row(report, row->parent)->depth + 1 == row->depth);
	}
	const xheap_totals *totals = xheap_report_get_totals(report);
	printf("totals %" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", totals->numbers->total_bytes,
	       totals->numbers->peak_bytes, totals->row_count);
	xheap_report_free(report);
	xheap_trace_close(trace);
	return failed > 0;
}

/* why TRACE text|json PID: the answer; or with classes, what get_class and get_stack give. */
static int print_why(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_why_options options;
	xheap_frames *frames;
	xheap_error error;
	xheap_why *why;
	char *text;
	size_t length;
	xheap_why_options_init(&options, sizeof(options));
	options.pid = (uint32_t)strtoul(words[1], NULL, 10);
	int status = as_printed(xheap_why_make(trace, &options, &why, &error), &error);
	xheap_trace_close(trace);
	if (status != XHEAP_OK)
		return 1;
	uint32_t format = !strcmp(words[0], "json") ? XHEAP_FORMAT_JSON : XHEAP_FORMAT_TEXT;
	if (strcmp(words[0], "classes") != 0 &&
	    as_printed(xheap_why_write(why, format, &text, &length, &error), &error) == XHEAP_OK) {
		EXPECT(strlen(text) == length);
		fputs(text, stdout);
		xheap_text_free(text);
	}
	const xheap_why_info *info = xheap_why_get_info(why);
	uint64_t sum = 0;
	for (uint32_t i = 0; !strcmp(words[0], "classes") && i < info->class_count; i++) {
		const xheap_why_class *class = xheap_why_get_class(why, i);
		sum += class->bytes;
		printf("%s,%" PRIu64 "\n", class->name, class->bytes);
	}
	EXPECT(!sum || sum == info->resident_bytes);
	for (uint32_t i = 0; !strcmp(words[0], "classes") && i < info->stack_count; i++) {
		const xheap_why_stack *stack = xheap_why_get_stack(why, i);
		EXPECT(xheap_why_get_frames(why, i, &frames, &error) == XHEAP_OK);
		printf("stack %" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u\n", stack->live_bytes, stack->block_count,
		       stack->pinned_page_bytes, xheap_frames_count(frames));
		xheap_frames_free(frames);
	}
	EXPECT(!xheap_why_get_class(why, info->class_count) && !xheap_why_get_stack(why, info->stack_count));
	EXPECT(xheap_why_get_frames(why, info->stack_count, &frames, NULL) == XHEAP_INVALID);
	EXPECT(xheap_why_write(why, XHEAP_FORMAT_CSV, &text, NULL, NULL) == XHEAP_INVALID && !text);
	xheap_why_free(why);
	return failed > 0;
}

/* copy SESSION PID PATH: a process as it is now, which a core has then; prints when that was, and the pause. */
static int copy_process(const char *name, char **words)
{
	int64_t time_ns = 0;
	uint64_t pause_ns = 0;
	int32_t pid = (int32_t)strtol(words[0], NULL, 10);
	xheap_session *session;
	xheap_error error;
	if (as_printed(xheap_session_open(name, NULL, &session, &error), &error) != XHEAP_OK)
		return 1;
	int status = xheap_session_copy(session, pid, words[1], 1, &time_ns, &pause_ns, &error);
	if (as_printed(status, &error) == XHEAP_OK &&
	    as_printed(xheap_session_flush(session, &error), &error) == XHEAP_OK)
		printf("%" PRId64 " %" PRIu64 "\n", time_ns, pause_ns);
	xheap_session_close(session);
	return status != XHEAP_OK;
}

static void print_leaks_rows(xheap_leaks *leaks)
{
	const xheap_leaks_info *info = xheap_leaks_get_info(leaks);
	xheap_frames *frames;
	printf("%" PRId64 "\n", info->time_ns);
	for (int reach = XHEAP_REACH_LOST; reach <= XHEAP_REACH_START; reach++)
		printf("%" PRIu64 ",%" PRIu64 "\n", info->counts[reach], info->bytes[reach]);
	for (uint32_t i = 0; i < info->row_count; i++) {
		const xheap_leaks_row *row = xheap_leaks_get_row(leaks, i);
		EXPECT(row->newest_ns <= row->oldest_ns && xheap_leaks_get_frames(leaks, i, &frames, NULL) == XHEAP_OK);
		printf("%u,%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%u\n", row->reach, row->count, row->bytes,
		       row->oldest_ns, xheap_frames_count(frames));
		xheap_frames_free(frames);
	}
}

/* leaks TRACE CORE text|json|rows SIZE TIME PAUSE: lost blocks of SIZE bytes and more; TIME and PAUSE of a process that
   ran on, or 0. */
static int print_leaks(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_leaks_options options;
	xheap_filter filter;
	xheap_error error;
	xheap_leaks *leaks;
	xheap_frames *frames;
	char *text;
	size_t length;
	xheap_filter_init(&filter, sizeof(filter));
	filter.size_from = strtoull(words[2], NULL, 10);
	EXPECT(xheap_leaks_make(trace, NULL, &leaks, &error) == XHEAP_INVALID && !leaks && strstr(error.text, "core"));
	xheap_leaks_options_init(&options, sizeof(options));
	options.core = words[0];
	options.filter = filter.size_from ? &filter : NULL;
	options.time_ns = strtoll(words[3], NULL, 10);
	options.pause_ns = strtoull(words[4], NULL, 10);
	options.is_running = options.time_ns != 0;
	int status = as_printed(xheap_leaks_make(trace, &options, &leaks, &error), &error);
	xheap_trace_close(trace);
	if (status != XHEAP_OK)
		return 1;
	uint32_t format = !strcmp(words[1], "json") ? XHEAP_FORMAT_JSON : XHEAP_FORMAT_TEXT;
	if (!strcmp(words[1], "rows"))
		print_leaks_rows(leaks);
	else if (as_printed(xheap_leaks_write(leaks, format, &text, &length, &error), &error) == XHEAP_OK) {
		EXPECT(strlen(text) == length);
		fputs(text, stdout);
		xheap_text_free(text);
	}
	uint32_t count = xheap_leaks_get_info(leaks)->row_count;
	EXPECT(!xheap_leaks_get_row(leaks, count) &&
	       xheap_leaks_get_frames(leaks, count, &frames, NULL) == XHEAP_INVALID);
	EXPECT(xheap_leaks_write(leaks, XHEAP_FORMAT_CSV, &text, NULL, NULL) == XHEAP_INVALID && !text);
	xheap_leaks_free(leaks);
	return failed > 0;
}

static void print_block(const char *name, const xheap_allocation *block, uint32_t is_live)
{
	if (block)
		printf("%s %u,0x%" PRIx64 ",%" PRIu64 ",%u,%u,%u\n", name, block->number, block->address, block->size,
		       block->stack != 0, block->end, is_live);
}

static void print_explained_rows(const xheap_explain *explain)
{
	const xheap_explain_info *info = xheap_explain_get_info(explain);
	printf("%u,%" PRIu64 ",%" PRIu64 ",%s\n", info->process, info->under_way_count, info->fault_count,
	       info->message);
	print_block("block", info->block, info->is_live);
	print_block("used", info->used_block, info->use_certainty);
	print_block("damaged", info->damaged_block, 0);
	for (uint32_t i = 0; i < info->call_count; i++) {
		const xheap_explain_call *call = xheap_explain_get_call(explain, i);
		printf("call %u,%u,%u,%u,%" PRId64 ",0x%" PRIx64 "\n", call->fault, call->certainty, call->is_under_way,
		       call->thread, call->time_ns, call->address);
		print_block("of call", call->block, call->is_live);
	}
}

/* explain TRACE text|json|rows CORE|- ADDRESS|- AT|- PID: a crash or an address; PID: 0, or of the process. */
static int print_explained(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_explain_options options;
	xheap_explain *explain;
	xheap_error error;
	char *text;
	size_t length;
	xheap_explain_options_init(&options, sizeof(options));
	options.core = words[1][0] == '-' ? NULL : words[1];
	options.has_address = words[2][0] != '-';
	options.address = strtoull(words[2], NULL, 16);
	options.at = words[3][0] == '-' ? NULL : words[3];
	options.pid = (uint32_t)strtoul(words[4], NULL, 10);
	int status = as_printed(xheap_explain_make(trace, &options, &explain, &error), &error);
	xheap_trace_close(trace);
	if (status != XHEAP_OK)
		return 1;
	uint32_t format = !strcmp(words[0], "json") ? XHEAP_FORMAT_JSON : XHEAP_FORMAT_TEXT;
	if (!strcmp(words[0], "rows"))
		print_explained_rows(explain);
	else if (as_printed(xheap_explain_write(explain, format, &text, &length, &error), &error) == XHEAP_OK) {
		EXPECT(strlen(text) == length);
		fputs(text, stdout);
		xheap_text_free(text);
	}
	EXPECT(!xheap_explain_get_call(explain, xheap_explain_get_info(explain)->call_count));
	EXPECT(xheap_explain_write(explain, XHEAP_FORMAT_CSV, &text, NULL, NULL) == XHEAP_INVALID && !text);
	xheap_explain_free(explain);
	return failed > 0;
}

/* stacks TRACE [alone]: each with its frames, innermost first; by the trace alone. */
static int print_stacks(const char *path, char **words)
{
	xheap_open_options open_options;
	xheap_trace *trace;
	xheap_error error;
	xheap_open_options_init(&open_options, sizeof(open_options));
	open_options.without_files = words[0] != NULL;
	if (as_printed(xheap_trace_open(path, &open_options, &trace, &error), &error) != XHEAP_OK)
		return 1;
	for (uint32_t stack = 1; stack < xheap_trace_get_info(trace)->stack_count; stack++) {
		xheap_frames *frames;
		xheap_address address;
		EXPECT(xheap_trace_get_address(trace, stack, &address) == XHEAP_OK && address.caller < stack);
		if (as_printed(xheap_trace_get_frames(trace, stack, XHEAP_NONE, &frames, &error), &error) != XHEAP_OK)
			return 1;
		for (uint32_t i = 0; i < xheap_frames_count(frames); i++) {
			const xheap_frame *frame = xheap_frames_get(frames, i);
			printf("%s%s%s%s", i ? ";" : "", frame->image && frame->symbol ? frame->image : "",
			       frame->image && frame->symbol ? "!" : "", frame->symbol ? frame->symbol : frame->text);
		}
		putchar('\n');
		xheap_frames_free(frames);
	}
	xheap_trace_close(trace);
	return failed > 0;
}

/* ---- manners ---- */

static int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;
	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count;
}

struct told {
	int errors, notes, progress;
	char last[512];
};

static void on_error(void *user, const xheap_error *error)
{
	struct told *told = (struct told *)user;
	told->errors++;
	snprintf(told->last, sizeof(told->last), "%s", error->text);
}

static void on_note(void *user, const char *text)
{
	(void)text;
	((struct told *)user)->notes++;
}

static void on_progress(void *user, uint64_t done, uint64_t all)
{
	EXPECT(done <= all);
	((struct told *)user)->progress++;
}

static xheap_callbacks callbacks_of(struct told *told)
{
	xheap_callbacks callbacks;
	xheap_callbacks_init(&callbacks, sizeof(callbacks));
	callbacks.user = told;
	callbacks.on_error = on_error;
	callbacks.on_note = on_note;
	callbacks.on_progress = on_progress;
	return callbacks;
}

/* As a later header would have it. */
struct later_options {
	xheap_report_options known;
	uint64_t unknown;
};

static void misuse_reports(xheap_trace *trace, struct told *told)
{
	xheap_report_options options;
	xheap_report *report = (xheap_report *)1;
	xheap_filter filter;
	xheap_error error;
	struct later_options later;
	const char *frame = "no_such_frame";
	uint32_t pid = 0;
	xheap_report_options_init(&options, sizeof(options));
	options.action = "stack";
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_INVALID && !report &&
	       strstr(error.text, "no action stack"));
	EXPECT(error.status == XHEAP_INVALID && error.system_error == EINVAL && told->errors == 1 &&
	       !strcmp(told->last, error.text));
	options.action = "callers";
	EXPECT(xheap_report_make(trace, &options, &report, NULL) == XHEAP_INVALID);
	options.callers_of = "no_such_frame";
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_NO_MATCH &&
	       strstr(error.text, "matches no frame"));
	xheap_report_options_init(&options, sizeof(options));
	options.sort = "xx";
	EXPECT(xheap_report_make(trace, &options, &report, NULL) == XHEAP_INVALID);
	options.sort = NULL;
	options.by = "day";
	EXPECT(xheap_report_make(trace, &options, &report, NULL) == XHEAP_INVALID);
	options.by = NULL;
	xheap_filter_init(&filter, sizeof(filter));
	options.filter = &filter;
	filter.require_frames = &frame;
	filter.require_frame_count = 1;
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_NO_MATCH &&
	       strstr(error.text, "no_such_frame"));
	frame = "!";
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_INVALID &&
	       strstr(error.text, "require_frames"));
	xheap_filter_init(&filter, sizeof(filter));
	filter.pids = &pid;
	filter.pid_count = 1;
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_INVALID &&
	       strstr(error.text, "no process 0"));
	filter.pids = NULL;
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_INVALID);
	filter.pid_count = 0;
	filter.size_from = 2;
	filter.size_to = 1;
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_INVALID &&
	       strstr(error.text, "ends before"));
	options.size = 3;
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_INVALID && strstr(error.text, "_init"));
	/* A struct of a later header: what is not used there may be. */
	xheap_report_options_init((xheap_report_options *)&later, sizeof(later));
	EXPECT(later.known.size == sizeof(later) && later.known.top == 10000);
	EXPECT(xheap_report_make(trace, &later.known, &report, &error) == XHEAP_OK);
	EXPECT(!xheap_report_get_row(report, UINT32_MAX));
	xheap_report_free(report);
	later.unknown = 1;
	EXPECT(xheap_report_make(trace, &later.known, &report, &error) == XHEAP_INVALID &&
	       strstr(error.text, "does not have"));
	/* Of an earlier one: what it does not have is as by default. */
	xheap_report_options_init(&options, sizeof(options));
	options.size = offsetof(xheap_report_options, top);
	options.top = 1;
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_OK &&
	       xheap_report_get_row(report, 1) != NULL);
	char *text;
	xheap_frames *frames;
	EXPECT(xheap_report_write(report, 9, &text, NULL, NULL) == XHEAP_INVALID && !text);
	EXPECT(xheap_report_get_frames(report, UINT32_MAX, &frames, NULL) == XHEAP_INVALID && !frames);
	xheap_report_free(report);
	options.action = "image";
	EXPECT(xheap_report_make(trace, &options, &report, &error) == XHEAP_OK);
	EXPECT(xheap_report_get_frames(report, 0, &frames, &error) == XHEAP_INVALID && strstr(error.text, "no stacks"));
	xheap_report_free(report);
}

/* misuse TRACE FOLDER: what cannot be is told, and nothing stays open. */
static int misuse(const char *path, char **words)
{
	int before = count_descriptors();
	struct told told = {0, 0, 0, ""};
	xheap_callbacks callbacks = callbacks_of(&told);
	xheap_open_options options;
	xheap_trace *trace = (xheap_trace *)1;
	xheap_error error;
	xheap_session *session;
	xheap_events *events;
	xheap_events_options events_options;
	xheap_frames *frames;
	xheap_address address;
	char damaged[4096];
	xheap_open_options_init(&options, sizeof(options));
	options.callbacks = &callbacks;
	EXPECT(xheap_trace_open("/no/such/trace", &options, &trace, &error) == XHEAP_NOT_FOUND && !trace &&
	       error.system_error == ENOENT);
	EXPECT(xheap_trace_open(words[0], &options, &trace, &error) == XHEAP_INVALID &&
	       strstr(error.text, "directory"));
	EXPECT(xheap_trace_open("/proc/self/exe", &options, &trace, &error) == XHEAP_DAMAGED &&
	       strstr(error.text, "is not a trace"));
	EXPECT(xheap_trace_open(NULL, &options, &trace, &error) == XHEAP_INVALID);
	EXPECT(xheap_trace_open_session("no such session", &options, &trace, &error) == XHEAP_NOT_FOUND && !trace);
	EXPECT(xheap_trace_open_session(NULL, &options, &trace, NULL) == XHEAP_INVALID);
	EXPECT(xheap_session_open("no such session", &callbacks, &session, &error) == XHEAP_NOT_FOUND && !session);
	EXPECT(xheap_session_open("a/b", NULL, &session, &error) == XHEAP_INVALID && strstr(error.text, "a/b"));
	EXPECT(xheap_session_open(NULL, NULL, &session, &error) == XHEAP_INVALID);
	EXPECT(xheap_session_start("a/b", NULL, &session, &error) == XHEAP_INVALID && !session);
	snprintf(damaged, sizeof(damaged), "%s/merged.xht", words[0]);
	EXPECT(xheap_trace_merge(damaged, &path, 1, &error) == XHEAP_OK);
	const char *twice[] = {path, path};
	EXPECT(xheap_trace_merge(damaged, twice, 2, &error) == XHEAP_INVALID);
	EXPECT(xheap_trace_merge(path, &path, 1, &error) == XHEAP_INVALID &&
	       strstr(error.text, "one of the files that are read"));
	EXPECT(xheap_trace_open(path, &options, &trace, &error) == XHEAP_OK && error.status == XHEAP_OK &&
	       !error.text[0]);
	const xheap_trace_info *info = xheap_trace_get_info(trace);
	EXPECT(info->is_complete && info->event_count && !xheap_trace_get_process(trace, info->process_count) &&
	       !xheap_trace_get_gap(trace, XHEAP_NONE));
	EXPECT(info->option_count && xheap_trace_get_option(trace, 0)->name[0] &&
	       !xheap_trace_get_option(trace, info->option_count));
	EXPECT(told.errors == 5);
	told.errors = 0;
	misuse_reports(trace, &told);
	EXPECT(xheap_trace_get_frames(trace, info->stack_count, XHEAP_NONE, &frames, &error) == XHEAP_INVALID &&
	       !frames);
	EXPECT(xheap_trace_get_frames(trace, 0, info->function_count, &frames, &error) == XHEAP_INVALID);
	EXPECT(xheap_trace_get_frames(trace, 0, XHEAP_NONE, &frames, &error) == XHEAP_OK &&
	       !xheap_frames_count(frames) && !xheap_frames_get(frames, 0));
	xheap_frames_free(frames);
	EXPECT(xheap_trace_get_address(trace, info->stack_count, &address) == XHEAP_INVALID &&
	       xheap_trace_get_address(trace, 0, &address) == XHEAP_END);
	xheap_events_options_init(&events_options, sizeof(events_options));
	events_options.order = 7;
	EXPECT(xheap_events_open(trace, &events_options, &events, &error) == XHEAP_INVALID && !events);
	xheap_trace_close(trace);
	xheap_trace_close(NULL);
	xheap_report_free(NULL);
	xheap_events_close(NULL);
	xheap_allocations_close(NULL);
	xheap_frames_free(NULL);
	xheap_session_close(NULL);
	xheap_session_state_free(NULL);
	xheap_text_free(NULL);
	EXPECT(xheap_api_version() == XHEAP_API_VERSION);
	EXPECT(!strcmp(xheap_status_name(XHEAP_FAILED), "failed") && !strcmp(xheap_status_name(-99), "unknown") &&
	       !xheap_kind_name(XHEAP_KIND_COUNT));
	EXPECT(count_descriptors() == before);
	printf("%d failed\n", failed);
	return failed > 0;
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 3 };

struct reader {
	pthread_t thread;
	xheap_trace *trace;
	int number;
	uint64_t events, allocations, bytes, rows, frames;
	int failures;
};

static void read_events(struct reader *reader)
{
	xheap_events_options options;
	xheap_events *events;
	const xheap_event_batch *batch;
	xheap_events_options_init(&options, sizeof(options));
	options.order = reader->number % 2 ? XHEAP_ORDER_TIME : XHEAP_ORDER_FILE;
	reader->failures += xheap_events_open(reader->trace, &options, &events, NULL) != XHEAP_OK;
	while (xheap_events_next_batch(events, &batch, NULL) == XHEAP_OK)
		reader->events += batch->count;
	xheap_events_close(events);
}

static void read_allocations(struct reader *reader)
{
	xheap_filter filter;
	xheap_allocations *allocations;
	const xheap_allocation *allocation;
	xheap_filter_init(&filter, sizeof(filter));
	filter.size_from = 16;
	reader->failures += xheap_allocations_open(reader->trace, &filter, &allocations, NULL) != XHEAP_OK;
	while (xheap_allocations_next(allocations, &allocation, NULL) == XHEAP_OK) {
		reader->allocations++;
		reader->bytes += allocation->size;
	}
	xheap_allocations_close(allocations);
}

static void read_report(struct reader *reader)
{
	xheap_report_options options;
	xheap_report *report;
	xheap_frames *frames;
	char *text;
	xheap_report_options_init(&options, sizeof(options));
	options.with_lines = reader->number % 2;
	reader->failures += xheap_report_make(reader->trace, &options, &report, NULL) != XHEAP_OK;
	for (uint32_t i = 0; xheap_report_get_row(report, i); i++) {
		reader->rows += xheap_report_get_row(report, i)->numbers->total_bytes;
		reader->failures += xheap_report_get_frames(report, i, &frames, NULL) != XHEAP_OK;
		reader->frames += xheap_frames_count(frames) > 0;
		xheap_frames_free(frames);
	}
	reader->failures += xheap_report_write(report, XHEAP_FORMAT_JSON, &text, NULL, NULL) != XHEAP_OK;
	xheap_text_free(text);
	xheap_report_free(report);
}

static void *read_all(void *context)
{
	struct reader *reader = (struct reader *)context;
	for (int round = 0; round < ROUNDS; round++) {
		read_events(reader);
		read_allocations(reader);
		read_report(reader);
	}
	return NULL;
}

/* stream TRACE: rows and bytes of all allocations, or what the stream says. */
static int print_stream(const char *path, char **words)
{
	xheap_trace *trace = open_trace(path);
	xheap_query query;
	struct ArrowArrayStream stream;
	struct ArrowArray batch;
	struct ArrowSchema schema;
	uint64_t rows = 0, bytes = 0;
	int failure, size = 0;
	(void)words;
	xheap_query_init(&query, sizeof(query));
	EXPECT(xheap_query_arrow(trace, &query, &stream, NULL) == XHEAP_OK);
	EXPECT(!stream.get_schema(&stream, &schema));
	while (strcmp(schema.children[size]->name, "size") != 0)
		size++;
	schema.release(&schema);
	while (!(failure = stream.get_next(&stream, &batch)) && batch.release) {
		for (int64_t i = 0; i < batch.length; i++)
			bytes += ((const uint64_t *)batch.children[size]->buffers[1])[i];
		rows += (uint64_t)batch.length;
		batch.release(&batch);
	}
	if (failure)
		printf("%d: %s\n", failure, stream.get_last_error(&stream));
	else
		printf("%" PRIu64 " rows, %" PRIu64 " bytes\n", rows, bytes);
	stream.release(&stream);
	xheap_trace_close(trace);
	return failed > 0;
}

/* threads TRACE: half of them on one trace, the others each on its own. */
static int read_in_threads(const char *path, char **words)
{
	struct reader readers[THREADS];
	xheap_trace *shared = open_trace(path);
	(void)words;
	for (int i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){.trace = i < THREADS / 2 ? shared : open_trace(path), .number = i};
		EXPECT(!pthread_create(&readers[i].thread, NULL, read_all, &readers[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(readers[i].thread, NULL);
		EXPECT(!readers[i].failures && readers[i].events == readers[0].events &&
		       readers[i].allocations == readers[0].allocations);
		EXPECT(readers[i].bytes == readers[0].bytes && readers[i].rows == readers[0].rows &&
		       readers[i].events && readers[i].frames);
		if (i >= THREADS / 2)
			xheap_trace_close(readers[i].trace);
	}
	xheap_trace_close(shared);
	printf("%" PRIu64 " events, %" PRIu64 " allocations, %d failed\n", readers[0].events / ROUNDS,
	       readers[0].allocations / ROUNDS, failed);
	return failed > 0;
}

/* ---- without memory ---- */

static size_t address_space(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (!file || fscanf(file, "%lu", &pages) != 1)
		exit(3);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Rows of three tables as streams; their errors as those of the other calls. */
static int try_streams(xheap_trace *trace, xheap_error *error)
{
	static const uint32_t tables[] = {XHEAP_TABLE_ALLOCATION, XHEAP_TABLE_EVENT, XHEAP_TABLE_FRAME};
	struct ArrowArrayStream stream;
	struct ArrowArray batch = {.release = NULL};
	struct ArrowSchema schema;
	xheap_query query;
	int status = XHEAP_OK;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && status == XHEAP_OK; i++) {
		xheap_query_init(&query, sizeof(query));
		query.table = tables[i];
		status = xheap_query_arrow(trace, &query, &stream, error);
		if (status != XHEAP_OK)
			return status;
		int failure = stream.get_schema(&stream, &schema);
		if (!failure)
			schema.release(&schema);
		while (!failure && !(failure = stream.get_next(&stream, &batch)) && batch.release)
			batch.release(&batch);
		if (failure) {
			EXPECT(failure == ENOMEM && stream.get_last_error(&stream) && !batch.release);
			status = error->status = XHEAP_NO_MEMORY;
			snprintf(error->text, sizeof(error->text), "%s", "a stream");
		}
		stream.release(&stream);
	}
	return status;
}

static int try_all(const char *path, xheap_error *error)
{
	struct told told = {0, 0, 0, ""};
	xheap_callbacks callbacks = callbacks_of(&told);
	xheap_open_options options;
	xheap_trace *trace;
	xheap_report *report = NULL;
	xheap_events *events = NULL;
	const xheap_event *event;
	char *text = NULL;
	xheap_open_options_init(&options, sizeof(options));
	options.callbacks = &callbacks;
	int status = xheap_trace_open(path, &options, &trace, error);
	if (status == XHEAP_OK)
		status = xheap_events_open(trace, NULL, &events, error);
	while (status == XHEAP_OK)
		status = xheap_events_next(events, &event, error);
	if (status == XHEAP_END)
		status = xheap_report_make(trace, NULL, &report, error);
	if (status == XHEAP_OK)
		status = xheap_report_write(report, XHEAP_FORMAT_JSON, &text, NULL, error);
	if (status == XHEAP_OK)
		status = try_streams(trace, error);
	EXPECT(status == XHEAP_OK || (error->status == status && error->text[0] && told.errors == 1));
	xheap_events_close(events);
	xheap_report_free(report);
	xheap_trace_close(trace);
	xheap_text_free(text);
	return status;
}

/* memory TRACE: with a little more of it from time to time, until there is enough. */
static int without_memory(const char *path, char **words)
{
	enum { STEP = 96 << 10, MOST = 512 << 20 };
	struct rlimit limit;
	xheap_error error;
	int refusals = 0, status = XHEAP_NO_MEMORY;
	(void)words;
	getrlimit(RLIMIT_AS, &limit);
	for (size_t more = 0; more < MOST && status != XHEAP_OK; more += STEP + more / 16) {
		setrlimit(RLIMIT_AS, &(struct rlimit){address_space() + more, limit.rlim_max});
		status = try_all(path, &error);
		setrlimit(RLIMIT_AS, &limit);
		refusals += status == XHEAP_NO_MEMORY;
		EXPECT(status == XHEAP_OK || status == XHEAP_NO_MEMORY);
		if (status != XHEAP_OK && status != XHEAP_NO_MEMORY)
			printf("with %zu bytes more: %s\n", more, error.text);
	}
	EXPECT(status == XHEAP_OK && refusals > 3);
	printf("%d refusals, %d failed\n", refusals, failed);
	return failed > 0;
}

/* ---- sessions ---- */

/* Whether its first thread waits for its standard input, by the number of read() on x86-64; all zeros are what an exec
   leaves. */
static int waits_for_input(pid_t pid)
{
	char path[64], line[16] = "";
	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	FILE *file = fopen(path, "r");
	if (file && !fgets(line, sizeof(line), file))
		line[0] = 0;
	if (file)
		fclose(file);
	return !strncmp(line, "0 0x0 0x", 8) && strncmp(line, "0 0x0 0x0 ", 10) != 0;
}

/* A process that runs until its input ends. */
struct target {
	pid_t pid;
	int input;
};

static struct target target_run(const char *path, const char *kind)
{
	int ends[2], null[2];
	EXPECT(!pipe(ends) && !pipe(null));
	struct target target = {fork(), ends[1]};
	if (target.pid == 0) {
		char *words[] = {(char *)path, (char *)kind, NULL};
		dup2(ends[0], 0);
		close(ends[1]);
		dup2(null[1], 1);
		execv(path, words);
		_exit(127);
	}
	close(ends[0]);
	close(null[0]);
	close(null[1]);
	int patience = 10000;
	while (patience && !waits_for_input(target.pid)) {
		usleep(20000);
		patience--;
	}
	EXPECT(patience);
	return target;
}

static int status_of(pid_t pid)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static uint32_t targets_of(xheap_session *session)
{
	xheap_session_state *state;
	xheap_error error;
	if (as_printed(xheap_session_query(session, &state, &error), &error) != XHEAP_OK)
		return XHEAP_NONE;
	uint32_t count = state->target_count;
	EXPECT(!count || (xheap_session_state_get_target(state, 0)->pid > 0 &&
			  xheap_session_state_get_target(state, 0)->command[0]));
	EXPECT(!xheap_session_state_get_target(state, count) && !state->thread_count &&
	       !xheap_session_state_get_thread(state, 0));
	xheap_session_state_free(state);
	return count;
}

/* What threads are told with adds up to what their targets are. */
static void check_threads(xheap_session *session)
{
	xheap_session_state *state;
	xheap_error error;
	if (as_printed(xheap_session_query_threads(session, &state, &error), &error) != XHEAP_OK) {
		failed++;
		return;
	}
	EXPECT(state->target_count && state->thread_count && state->logger_bytes > 1 << 16 && !state->write_count &&
	       !state->folded_bytes);
	for (uint32_t i = 0, at = 0; i < state->target_count; i++) {
		const xheap_target *target = xheap_session_state_get_target(state, i);
		const xheap_target_thread *thread;
		uint64_t events = 0, waits = 0, truncated = 0, rate = 0;
		uint32_t threads = 0;
		for (; (thread = xheap_session_state_get_thread(state, at)) && thread->target == i; at++, threads++) {
			events += thread->events;
			rate += thread->events_per_second;
			waits += thread->waits;
			truncated += thread->truncated_stacks;
			EXPECT(thread->tid > 0 && thread->name[0] && thread->wait_ns <= target->wait_ns);
		}
		EXPECT(threads == target->threads && events && events <= target->events && waits <= target->waits &&
		       truncated <= target->truncated_stacks);
		EXPECT(rate > 0 && target->events_per_second > 0 && target->cpu_ns > 0 && target->resident_bytes > 0 &&
		       target->pause_ns > 0);
		EXPECT(i + 1 < state->target_count || at == state->thread_count);
	}
	EXPECT(!xheap_session_state_get_thread(state, state->thread_count));
	xheap_session_state_free(state);
}

struct sought {
	const char *name;
	int count;
};

static int seek(void *user, const char *name, int is_alive)
{
	struct sought *sought = (struct sought *)user;
	sought->count += is_alive && !strcmp(name, sought->name);
	return sought->count;
}

static void *query_often(void *context)
{
	xheap_session *session = (xheap_session *)context;
	intptr_t bad = 0;
	for (int i = 0; i < 20; i++) {
		xheap_session_state *state;
		bad += xheap_session_query(session, &state, NULL) != XHEAP_OK ||
		       xheap_session_flush(session, NULL) != XHEAP_OK;
		xheap_session_state_free(state);
	}
	return (void *)bad;
}

static void change_session(xheap_session *session, const char *program, struct target *one)
{
	const struct target two = target_run(program, "idle");
	const int32_t both[] = {two.pid, 4194303}, second[] = {two.pid};
	xheap_update update;
	xheap_error error;
	/* All of them, or none. */
	EXPECT(xheap_session_add(session, both, 2, &error) == XHEAP_NOT_FOUND && strstr(error.text, "4194303"));
	EXPECT(targets_of(session) == 1);
	EXPECT(xheap_session_add(session, second, 1, &error) == XHEAP_OK && targets_of(session) == 2);
	EXPECT(xheap_session_remove(session, second, 1, &error) == XHEAP_OK && targets_of(session) == 1);
	EXPECT(xheap_session_remove(session, second, 1, &error) == XHEAP_NOT_FOUND);
	xheap_update_init(&update, sizeof(update));
	update.changes = XHEAP_CHANGE_PIDS | XHEAP_CHANGE_STACKS | XHEAP_CHANGE_ON_FULL | XHEAP_CHANGE_WAIT_LIMIT;
	update.pids = second;
	update.pid_count = 1;
	update.stacks = XHEAP_STACKS_FREE;
	update.on_full = XHEAP_FULL_DROP;
	update.wait_limit_ms = 77;
	EXPECT(as_printed(xheap_session_update(session, &update, &error), &error) == XHEAP_OK &&
	       targets_of(session) == 1);
	xheap_session_state *state;
	EXPECT(xheap_session_query(session, &state, &error) == XHEAP_OK &&
	       xheap_session_state_get_target(state, 0)->pid == two.pid);
	EXPECT(state->stacks == XHEAP_STACKS_FREE && state->on_full == XHEAP_FULL_DROP && state->wait_limit_ms == 77 &&
	       !state->ended);
	EXPECT(state->events > 1000 && state->buffer_bytes == 131072 && state->max_buffers == 64 &&
	       state->logger_pid > 0);
	xheap_session_state_free(state);
	update.changes = 64;
	EXPECT(xheap_session_update(session, &update, &error) == XHEAP_INVALID);
	update.changes = XHEAP_CHANGE_STACKS;
	update.stacks = XHEAP_STACKS_ALL;
	EXPECT(xheap_session_update(session, &update, &error) == XHEAP_OK && targets_of(session) == 1);
	close(one->input);
	close(two.input);
	EXPECT(status_of(one->pid) == 0 && status_of(two.pid) == 0);
}

/* What a session has recorded up to now. */
static uint64_t events_now(const char *name)
{
	xheap_trace *trace;
	xheap_error error;
	if (as_printed(xheap_trace_open_session(name, NULL, &trace, &error), &error) != XHEAP_OK)
		return 0;
	EXPECT(!xheap_trace_get_info(trace)->is_complete);
	uint64_t events = xheap_trace_get_info(trace)->event_count;
	xheap_trace_close(trace);
	return events;
}

static void launch_in(xheap_session *session, const char *program)
{
	char *words[] = {(char *)program, (char *)"short", NULL}, *bad[] = {(char *)"/dev/null", NULL};
	int32_t pid = 7;
	xheap_error error;
	EXPECT(xheap_session_launch(session, bad[0], bad, NULL, &pid, &error) == XHEAP_DENIED && pid == 0 &&
	       strstr(error.text, "/dev/null"));
	EXPECT(as_printed(xheap_session_launch(session, program, words, NULL, &pid, &error), &error) == XHEAP_OK);
	EXPECT(status_of(pid) == 0);
}

/* sessions TRACE TARGET */
static int run_sessions(const char *path, char **words)
{
	const char *program = words[0];
	struct target one = target_run(program, "count");
	int before = count_descriptors();
	struct told told = {0, 0, 0, ""};
	xheap_callbacks callbacks = callbacks_of(&told);
	xheap_session_options options;
	xheap_session *session, *other;
	xheap_summary summary;
	xheap_error error;
	char name[64];
	snprintf(name, sizeof(name), "api test %d", (int)getpid());
	struct sought sought = {name, 0};
	xheap_session_options_init(&options, sizeof(options));
	options.path = "/no/such/folder/x.xht";
	EXPECT(xheap_session_start(name, &options, &session, &error) == XHEAP_NOT_FOUND && !session &&
	       strstr(error.text, "/no/such/folder"));
	options.path = path;
	options.command = "/no/such/command";
	EXPECT(xheap_session_start(name, &options, &session, &error) == XHEAP_NOT_FOUND &&
	       strstr(error.text, "/no/such/command"));
	options.command = NULL;
	const char *bad[] = {"--no-such-option"};
	options.words = bad;
	options.word_count = 1;
	EXPECT(xheap_session_start(name, &options, &session, &error) == XHEAP_FAILED &&
	       strstr(error.text, "no such option"));
	options.word_count = 0;
	const int32_t nobody[] = {4194303}, first[] = {one.pid};
	options.pids = nobody;
	options.pid_count = 1;
	EXPECT(xheap_session_start(name, &options, &session, &error) == XHEAP_NOT_FOUND && access(path, F_OK) != 0);
	options.pids = first;
	options.buffer_bytes = 131072;
	options.max_buffers = 64;
	options.callbacks = &callbacks;
	EXPECT(as_printed(xheap_session_start(name, &options, &session, &error), &error) == XHEAP_OK);
	if (!session)
		return 1;
	options.pid_count = 0;
	EXPECT(xheap_session_start(name, &options, &other, &error) == XHEAP_EXISTS && !other);
	EXPECT(xheap_session_each(seek, &sought) == 1);
	EXPECT(as_printed(xheap_session_open(name, NULL, &other, &error), &error) == XHEAP_OK);
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		EXPECT(!pthread_create(&threads[i], NULL, query_often, session));
	for (int i = 0; i < 3; i++) {
		void *failures;
		pthread_join(threads[i], &failures);
		EXPECT(!failures);
	}
	uint64_t events = 0;
	for (int patience = 2000; patience && (events = events_now(name)) < 2000; patience--)
		usleep(100000);
	EXPECT(events >= 2000);
	check_threads(session);
	change_session(session, program, &one);
	launch_in(other, program);
	EXPECT(xheap_session_flush(session, &error) == XHEAP_OK && events_now(name) > events);
	xheap_summary_init(&summary, sizeof(summary));
	EXPECT(as_printed(xheap_session_stop(session, &summary, &error), &error) == XHEAP_OK);
	/* One of them twice. */
	EXPECT(summary.events > events && summary.processes == 4 && summary.size_bytes > 0 && summary.lost_events == 0);
	EXPECT(xheap_session_query(other, (xheap_session_state *[]){NULL}, &error) == XHEAP_NOT_FOUND);
	EXPECT(told.errors > 0);
	xheap_session_close(session);
	/* A handle is of its session, not of whoever has the name now. */
	EXPECT(xheap_session_start(name, &options, &session, &error) == XHEAP_OK);
	EXPECT(xheap_session_flush(other, &error) == XHEAP_GONE && strstr(error.text, "another"));
	EXPECT(xheap_session_stop(session, NULL, &error) == XHEAP_OK);
	xheap_session_close(session);
	xheap_session_close(other);
	/* Who does not want to know of its children's ends can have sessions, too. */
	signal(SIGCHLD, SIG_IGN);
	EXPECT(as_printed(xheap_session_start(name, &options, &session, &error), &error) == XHEAP_OK);
	EXPECT(xheap_session_stop(session, NULL, &error) == XHEAP_OK);
	xheap_session_close(session);
	options.word_count = 1;
	EXPECT(xheap_session_start(name, &options, &session, &error) == XHEAP_FAILED &&
	       strstr(error.text, "no such option"));
	EXPECT(count_descriptors() == before - 1);
	printf("%d failed\n", failed);
	return failed > 0;
}

/* targets SESSION: a line for each, pid and is_limited. */
static int print_targets(const char *name, char **words)
{
	xheap_session *session;
	xheap_session_state *state;
	xheap_error error;
	(void)words;
	if (as_printed(xheap_session_open(name, NULL, &session, &error), &error) != XHEAP_OK)
		return 1;
	if (as_printed(xheap_session_query(session, &state, &error), &error) == XHEAP_OK) {
		for (uint32_t i = 0; i < state->target_count; i++) {
			const xheap_target *target = xheap_session_state_get_target(state, i);
			printf("%d %u\n", target->pid, target->is_limited);
		}
	}
	xheap_session_state_free(state);
	xheap_session_close(session);
	return 0;
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		int (*run)(const char *path, char **words);
		int words;
	} modes[] = {
		{"events", print_events, 5},     {"allocations", print_allocations, 4},
		{"report", print_report, 7},     {"rows", print_rows, 4},
		{"stacks", print_stacks, 0},     {"misuse", misuse, 1},
		{"threads", read_in_threads, 0}, {"memory", without_memory, 0},
		{"sessions", run_sessions, 1},   {"targets", print_targets, 0},
		{"stream", print_stream, 0},     {"why", print_why, 2},
		{"copy", copy_process, 2},       {"leaks", print_leaks, 5},
		{"explain", print_explained, 5},
	};
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes) && count > 2; i++)
		if (!strcmp(words[1], modes[i].name) && count >= 3 + modes[i].words)
			return modes[i].run(words[2], words + 3);
	fprintf(stderr, "api: no such mode, or words are missing\n");
	return 2;
}
