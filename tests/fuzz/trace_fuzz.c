/* SPDX-License-Identifier: MIT */
/*
 * A trace comes from anybody. The input is a file, opened and read as every command does it: dictionaries, events, the
 * model on top; as a program does it, by the library's calls; then gone on with, as `xheap recover` does.
 *
 * Checksums are mended first (mend.h).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "match/match.h"
#include "mend.h"
#include "query/by.h"
#include "query/window.h"
#include "replay.h"
#include "table/table.h"
#include "trace/gap_rows.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/row_ids.h"
#include "trace/trace.h"
#include "trace/writer.h"
#include "xheap/xheap.h"

enum { INPUT_MAX = 1 << 20 };

/* ---- reading ---- */

#define expect(is_so) ((is_so) ? (void)0 : (fprintf(stderr, "trace_fuzz:%d: %s\n", __LINE__, #is_so), abort()))

/* What trace.h promises of dictionaries, whatever the file said. */
static void check_dictionary(const struct trace_dictionary *dictionary)
{
	expect(dictionary->is_complete || strstr(dictionary->cut_reason, "offset"));
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		expect(process->parent == TRACE_NONE || process->parent < i);
		expect(process->forked_from == TRACE_NONE || process->forked_from < i);
		expect(process->image && process->command && process->note);
	}
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		expect(dictionary->threads[i].process < dictionary->process_count && dictionary->threads[i].name);
	for (uint32_t i = 0; i < dictionary->mapping_count; i++)
		expect(dictionary->mappings[i].process < dictionary->process_count &&
		       dictionary->mappings[i].image < dictionary->image_count);
	for (uint32_t i = 0; i < dictionary->frame_count; i++)
		expect(dictionary->frames[i].image == TRACE_NONE ||
		       dictionary->frames[i].image < dictionary->image_count);
	for (uint32_t i = 1; i < dictionary->node_count; i++)
		expect(dictionary->nodes[i].parent < i && dictionary->nodes[i].frame < dictionary->frame_count);
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		expect(dictionary->entries[i].name && (dictionary->entries[i].image == TRACE_NONE ||
						       dictionary->entries[i].image < dictionary->image_count));
	for (uint32_t i = 0; i < dictionary->heap_count; i++)
		expect(dictionary->heaps[i].process < dictionary->process_count && dictionary->heaps[i].name);
	for (uint32_t i = 0; i < dictionary->symbol_count; i++)
		expect(dictionary->symbols[i].frame < dictionary->frame_count &&
		       dictionary->symbols[i].first + dictionary->symbols[i].count <= dictionary->function_count);
	for (uint32_t i = 0; i < dictionary->function_count; i++)
		expect(dictionary->functions[i].function && dictionary->functions[i].mangled &&
		       dictionary->functions[i].file);
	for (uint32_t i = 0; i < dictionary->named_count; i++)
		expect(dictionary->nameds[i].image < dictionary->image_count);
	for (uint32_t i = 0; i < dictionary->sample_count; i++)
		expect(dictionary->samples[i].process < dictionary->process_count);
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		expect((dictionary->gaps[i].process == TRACE_NONE ||
			dictionary->gaps[i].process < dictionary->process_count) &&
		       (dictionary->gaps[i].thread == TRACE_NONE ||
			dictionary->gaps[i].thread < dictionary->thread_count));
}

static void check_block(const struct trace_dictionary *dictionary, const struct trace_block *block)
{
	expect(block->process < dictionary->process_count && block->thread < dictionary->thread_count);
	for (uint32_t i = 0; i < block->count; i++) {
		expect(block->kind[i] < EVENT_KIND_COUNT && block->entry[i] < dictionary->entry_count &&
		       block->stack[i] < dictionary->node_count);
		expect(block->heap[i] == TRACE_NONE || block->heap[i] < dictionary->heap_count);
	}
	for (uint32_t i = 0; i < block->context_count; i++)
		expect(block->contexts[i].event < block->count &&
		       (!i || block->contexts[i].event > block->contexts[i - 1].event));
}

/* Read a block of events again, first without some columns. All others must be the same, and times that are read later,
   too. */
static void read_less(struct trace_cursor *cursor, uint32_t number, const struct trace_block *whole, bool has_addresses)
{
	struct trace_block block;
	struct diag diag = {""};
	expect(trace_cursor_read(cursor, number, &block, &diag) == 0);
	expect(trace_cursor_read_times(cursor, &diag) == 0);
#define SAME(column) expect(!memcmp(block.column, whole->column, block.count * sizeof(*block.column)))
	expect(block.context_count == whole->context_count);
	for (uint32_t i = 0; i < block.context_count; i++)
		expect(block.contexts[i].event == whole->contexts[i].event &&
		       thread_context_is_same(&block.contexts[i].context, &whole->contexts[i].context));
	SAME(kind);
	SAME(flags);
	SAME(entry);
	SAME(heap);
	SAME(stack);
	SAME(time_ns);
	SAME(duration_ns);
	SAME(size);
	SAME(usable);
	SAME(argument);
	SAME(argument2);
	SAME(result);
	if (!has_addresses)
		return;
	SAME(address);
	SAME(previous);
#undef SAME
}

static void read_events(const struct trace *trace)
{
	struct trace_cursor *cursor = trace_cursor_new(trace), *without_times = trace_cursor_new(trace),
			    *without_both = trace_cursor_new(trace);
	expect(cursor && without_times && without_both);
	trace_cursor_leave_out(without_times, TRACE_WITHOUT_TIMES);
	trace_cursor_leave_out(without_both, TRACE_WITHOUT_TIMES | TRACE_WITHOUT_ADDRESSES);
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		struct trace_block block;
		struct diag diag = {""};
		if (trace_cursor_read(cursor, i, &block, &diag) == 0) {
			check_block(trace_dictionary(trace), &block);
			read_less(without_times, i, &block, true);
			read_less(without_both, i, &block, false);
		} else {
			expect(strstr(diag.text, "offset"));
		}
	}
	trace_cursor_free(cursor);
	trace_cursor_free(without_times);
	trace_cursor_free(without_both);
}

static void read_model(const struct trace *trace)
{
	struct heap_table *table;
	struct heap_window window, by_heap;
	struct diag diag = {""};
	if (heap_table_build(&table, trace, NULL, &diag)) {
		expect(diag.text[0]);
		return;
	}
	struct heap_filter filter;
	heap_filter_init(&filter);
	for (int by = HEAP_BY_NONE; by <= HEAP_BY_CLASS; by++) {
		heap_window_make(&window, table, &filter,
				 (struct heap_range){by % 2 ? 1000 : 0, by % 2 ? 5000 : table->duration_ns},
				 (enum heap_by)by);
		heap_window_make_by_heap(&by_heap, &window, table, &filter);
		for (uint32_t i = 0; i < window.cell_count && i < 16; i++)
			free(heap_by_text(&window, table, window.cells[i].by));
		heap_window_fini(&by_heap);
		heap_window_fini(&window);
	}
	heap_filter_fini(&filter);
	heap_table_free(table);
}

/* ---- as programs do ---- */

/* What xheap.h promises of results: they are one of its own, and errors say why. */
static int checked(int status, const xheap_error *error)
{
	expect(status == error->status && status >= XHEAP_FAILED && status <= XHEAP_END &&
	       (status >= 0 || error->text[0]));
	expect(!strstr(error->text, "mistake"));
	return status;
}

static void read_program_events(xheap_trace *trace, uint32_t order)
{
	const xheap_trace_info *info = xheap_trace_get_info(trace);
	xheap_events_options options;
	xheap_events *events;
	const xheap_event *event;
	xheap_error error;
	uint64_t count = 0;
	xheap_events_options_init(&options, sizeof(options));
	options.order = order;
	expect(xheap_events_open(trace, &options, &events, &error) == XHEAP_OK);
	while (checked(xheap_events_next(events, &event, &error), &error) == XHEAP_OK) {
		expect(xheap_trace_get_function(trace, event->function) &&
		       xheap_trace_get_thread(trace, event->thread) && event->stack < info->stack_count);
		count++;
	}
	expect(count <= info->event_count);
	xheap_events_close(events);
}

static void read_program_allocations(xheap_trace *trace)
{
	xheap_allocations *allocations;
	const xheap_allocation_batch *batch;
	xheap_error error;
	if (checked(xheap_allocations_open(trace, NULL, &allocations, &error), &error) != XHEAP_OK)
		return;
	while (checked(xheap_allocations_next_batch(allocations, &batch, &error), &error) == XHEAP_OK)
		for (uint32_t i = 0; i < batch->count; i++) {
			expect(xheap_trace_get_thread(trace, batch->thread[i]) &&
			       batch->stack[i] < xheap_trace_get_info(trace)->stack_count);
			expect(batch->end[i] <= XHEAP_END_OPEN && batch->usable_size[i] >= batch->size[i]);
		}
	xheap_allocations_close(allocations);
}

static void read_program_report(xheap_trace *trace, size_t choice)
{
	static const char *const actions[] = {"stacks", "frames", "frames-inclusive", "image",
					      "heaps",  "tree",   "chains",           "totals"};
	xheap_report_options options;
	xheap_report *report;
	xheap_error error;
	char *text;
	xheap_report_options_init(&options, sizeof(options));
	options.action = actions[choice % (sizeof(actions) / sizeof(*actions))];
	if (checked(xheap_report_make(trace, &options, &report, &error), &error) != XHEAP_OK)
		return;
	expect(checked(xheap_report_write(report, (uint32_t)(choice % 3), &text, NULL, &error), &error) == XHEAP_OK &&
	       text[0]);
	xheap_text_free(text);
	xheap_report_free(report);
}

static void read_as_program(const char *path, size_t choice)
{
	xheap_trace *trace;
	xheap_frames *frames;
	xheap_address address;
	xheap_error error;
	xheap_open_options options;
	xheap_open_options_init(&options, sizeof(options));
	options.without_files = 1;
	expect(checked(xheap_trace_open(path, &options, &trace, &error), &error) == XHEAP_OK);
	uint32_t stacks = xheap_trace_get_info(trace)->stack_count;
	for (uint32_t stack = 1; stack < stacks; stack++)
		expect(xheap_trace_get_address(trace, stack, &address) == XHEAP_OK && address.caller < stack);
	if (stacks > 1 &&
	    checked(xheap_trace_get_frames(trace, 1 + (uint32_t)choice % (stacks - 1), XHEAP_NONE, &frames, &error),
		    &error) == XHEAP_OK)
		xheap_frames_free(frames);
	read_program_events(trace, choice % 2);
	read_program_allocations(trace);
	read_program_report(trace, choice);
	xheap_trace_close(trace);
}

/* What can be read can be gone on with, and is whole then. */
static void go_on(const char *path)
{
	struct writer *writer;
	struct trace *trace;
	struct diag diag = {""};
	struct trace_statistics statistics = {0};
	if (writer_reopen(&writer, path, NULL, &diag)) {
		expect(diag.text[0]);
		return;
	}
	writer_close(writer, &statistics, &diag);
	expect(trace_open(&trace, path, &diag) == 0);
	check_dictionary(trace_dictionary(trace));
	trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[INPUT_MAX + 16] __attribute__((aligned(8)));
	static char path[64];
	struct trace *trace;
	struct diag diag = {""};
	if (size > INPUT_MAX)
		return 0;
	if (!path[0])
		snprintf(path, sizeof(path), "/dev/shm/xheap-fuzz-%d.xht", (int)getpid());
	size = mend(out, data, size);
	FILE *file = fopen(path, "wb");
	expect(file && fwrite(out, 1, size, file) == size && fclose(file) == 0);
	if (trace_open(&trace, path, &diag) == 0) {
		check_dictionary(trace_dictionary(trace));
		read_events(trace);
		read_model(trace);
		trace_close(trace);
		read_as_program(path, size);
		go_on(path);
	} else {
		expect(diag.text[0]);
	}
	unlink(path);
	return 0;
}

enum { SMALL_BYTES = 4096, STEP = 4 };

/* A small one cut at every fourth byte, with SOAK=1 at every byte, with its own checksums. */
static void try_every_byte(uint8_t *data, size_t size)
{
	size_t flag = offsetof(struct format_header, reserved);
	if (size <= flag || size > SMALL_BYTES)
		return;
	data[flag] |= AS_IT_IS;
	for (size_t cut = 0; cut < size; cut += getenv("SOAK") ? 1 : STEP)
		LLVMFuzzerTestOneInput(data, cut);
	data[flag] &= (uint8_t)~AS_IT_IS;
}

const struct replay replay = {.bytes_max = INPUT_MAX, .cuts = 60, .flip_rounds = 100, .more = try_every_byte};
