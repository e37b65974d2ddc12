/* SPDX-License-Identifier: MIT */
/*
 * The end of a file that could not take everything: how its processes ended, what is missing, and when and why
 * recording ended. All of it fits the room that is kept for the end.
 */
#include "trace/ending.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/grow.h"
#include "trace/gap_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/segment.h"

bool writer_has_ended(const struct writer *writer)
{
	return writer->error != 0;
}

static uint64_t *calls_of(struct writer *writer, uint32_t process)
{
	struct segment_ending *ending = &writer->ending;
	if (process >= writer->dictionary.process_count)
		return &ending->other_calls;
	if (!grow_to(ending->calls, process, ending->call_capacity))
		return &ending->other_calls;
	return &ending->calls[process];
}

void writer_count_after(struct writer *writer, uint32_t process, uint64_t calls, uint64_t ticks)
{
	struct segment_ending *ending = &writer->ending;
	uint64_t *sum = calls_of(writer, process);
	*sum += calls;
	if (!ending->ticks || ticks < ending->ticks)
		ending->ticks = ticks;
	if (ending->note)
		ending->note(ending->cookie, sum == &ending->other_calls ? TRACE_NONE : process);
}

void writer_note_after(struct writer *writer, void (*note)(void *cookie, uint32_t process), void *cookie)
{
	writer->ending.note = note;
	writer->ending.cookie = cookie;
}

int writer_end_reason(const struct writer *writer, char reason[TRACE_REASON_BYTES], uint64_t *ticks)
{
	struct diag diag = {""};
	writer_explain(writer, writer->error, &diag);
	snprintf(reason, TRACE_REASON_BYTES, "%.*s", TRACE_REASON_BYTES - 1,
		 writer->ending.reason[0] ? writer->ending.reason : diag.text);
	*ticks = writer->ending.ticks;
	return writer->error;
}

void writer_end_early(struct writer *writer, int error, const char *reason, uint64_t ticks)
{
	writer_fail(writer, error);
	snprintf(writer->ending.reason, sizeof(writer->ending.reason), "%s", reason);
	writer->ending.ticks = ticks;
}

const struct trace_process *writer_process(const struct writer *writer, uint32_t id)
{
	return id < writer->dictionary.process_count ? &writer->dictionary.processes[id] : NULL;
}

uint64_t writer_calls_after(const struct writer *writer, uint32_t process)
{
	const struct segment_ending *ending = &writer->ending;
	return process == TRACE_NONE             ? ending->other_calls
	       : process < ending->call_capacity ? ending->calls[process]
						 : 0;
}

uint64_t writer_all_calls_after(const struct writer *writer)
{
	uint64_t calls = writer->ending.other_calls;
	for (uint32_t id = 0; id < writer->ending.call_capacity; id++)
		calls += writer->ending.calls[id];
	return calls;
}

/* Write the rows of processes, those with calls after the end first: they may not be in the file yet. */
static void put_processes(struct writer *writer)
{
	struct section *section = segment_section(writer, FORMAT_PROCESSES);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t id = 0; id < writer->dictionary.process_count; id++) {
			struct section before = *section;
			if ((writer_calls_after(writer, id) > 0) != (pass == 0))
				continue;
			segment_put_process(writer, id);
			if (section->bytes.size <= PROCESSES_AFTER_END_BYTES)
				continue;
			section->bytes.size = before.bytes.size;
			section->count = before.count;
		}
	}
}

static void put_gaps(struct writer *writer, const struct section *gaps)
{
	struct section *section = segment_section(writer, FORMAT_GAPS);
	bytes_add(&section->bytes, gaps->bytes.data, gaps->bytes.size);
	section->count = gaps->count;
}

/* Each process that still ran, and the recording. Calls of processes without room for a row are the recording's. */
static void put_early_ends(struct writer *writer, const char *reason)
{
	const struct dictionary *dictionary = &writer->dictionary;
	struct section *section = segment_section(writer, FORMAT_EARLY_ENDS);
	uint64_t other_calls = writer->ending.other_calls;
	int64_t ticks = (int64_t)(writer->ending.ticks ? writer->ending.ticks
				  : writer->last_ticks ? writer->last_ticks
						       : writer->clock.start_ticks);
	for (uint32_t id = 0; id < dictionary->process_count; id++) {
		const struct trace_process *process = &dictionary->processes[id];
		uint64_t calls = writer_calls_after(writer, id);
		if (trace_process_is_untraced(process) ||
		    (!calls && process->end != TRACE_END_OPEN && process->end_ns < ticks))
			continue;
		if (section->bytes.size >= EARLY_ENDS_BYTES) {
			other_calls += calls;
			continue;
		}
		rows_put_early_end(
			&section->bytes,
			&(struct trace_early_end){.process = id, .time_ns = ticks, .calls = calls, .reason = ""});
		section->count++;
	}
	rows_put_early_end(&section->bytes,
			   &(struct trace_early_end){
				   .process = TRACE_NONE, .time_ns = ticks, .calls = other_calls, .reason = reason});
	section->count++;
}

void ending_put(struct writer *writer, const struct section *gaps, const char *reason)
{
	put_processes(writer);
	put_gaps(writer, gaps);
	put_early_ends(writer, reason);
}
