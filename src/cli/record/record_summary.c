/* SPDX-License-Identifier: MIT */
#include "cli/record/record_summary.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/record/record.h"
#include "cli/record/record_answer.h"
#include "session/logger/logger.h"
#include "table/index_cache.h"

static void print_untraced(const struct control_summary *summary)
{
	if (summary->untraced_processes || summary->untraced_calls)
		cli_say("%u process%s ran untraced, %s calls found no room", summary->untraced_processes,
			summary->untraced_processes == 1 ? "" : "es", text_count(summary->untraced_calls).data);
}

static void print_check(const struct control_summary *summary)
{
	cli_say("%s remembered stacks differed from a full walk", text_count(summary->check_failures).data);
}

/* With --quiet: what the trace lacks, if anything. */
static void print_missing(const struct record *record)
{
	const struct control_summary *summary = &record->summary;
	if (summary->after)
		cli_say("%s later calls were not recorded", text_count(summary->after).data);
	if (summary->lost)
		cli_say("%s of %s events are lost", text_count(summary->lost).data,
			text_count(summary->events + summary->lost).data);
	print_untraced(summary);
	if (summary->check_failures)
		print_check(summary);
}

/* The indexer had the same environment, and so the same cache. */
static void print_index(const struct control_summary *summary)
{
	char directory[CACHE_PATH_BYTES];
	struct diag ignored = {""};
	if (!summary->index_bytes)
		return;
	if (index_cache_directory(directory, &ignored))
		cli_say("the trace has an index, %s", text_bytes(summary->index_bytes).data);
	else
		cli_say("the trace has an index, %s in %s (xheap clean removes it)",
			text_bytes(summary->index_bytes).data, directory);
}

static void print_logger_end(const char *shown, int logger_status)
{
	char how[100];
	if (WIFSIGNALED(logger_status))
		snprintf(how, sizeof(how), "was killed by signal %d (%s)", WTERMSIG(logger_status),
			 strsignal(WTERMSIG(logger_status)));
	else if (WEXITSTATUS(logger_status) == LOGGER_NO_MEMORY)
		snprintf(how, sizeof(how), "ended for want of memory");
	else
		snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(logger_status));
	cli_say("the logger %s; what it recorded is safe: xheap recover %s", how, shown);
}

static void print_counts(const struct record *record)
{
	const struct control_summary *summary = &record->summary;
	char unwindless[100] = "";
	if (summary->ends.unwindless)
		snprintf(unwindless, sizeof(unwindless), ", %s end at code without unwind data",
			 text_count(summary->ends.unwindless).data);
	cli_say("%s events of %u process%s, %s lost, %s stacks truncated%s", text_count(summary->events).data,
		summary->processes, summary->processes == 1 ? "" : "es", text_count(summary->lost).data,
		text_count(summary->ends.truncated).data, unwindless);
	if (summary->after)
		cli_say("%s later calls were not recorded", text_count(summary->after).data);
	if (record->session.sample_bytes)
		cli_say("a sample: one byte in %s allocated bytes was chosen; reports estimate the rest",
			text_bytes(record->session.sample_bytes).data);
	print_untraced(summary);
	if (record->session.check_stacks)
		print_check(summary);
}

/* In place of the answer: what needs no look at the trace. */
static void print_kinds(const struct control_summary *summary)
{
	const uint64_t *kinds = summary->kinds;
	if (kinds[EVENT_ALLOC])
		cli_say("%s block%s allocated, %s reallocated, %s freed", text_count(kinds[EVENT_ALLOC]).data,
			kinds[EVENT_ALLOC] == 1 ? "" : "s", text_count(kinds[EVENT_REALLOC]).data,
			text_count(kinds[EVENT_FREE]).data);
}

static void print_trace(const struct record *record, const char *shown)
{
	const struct control_summary *summary = &record->summary;
	uint64_t kept = summary->events - summary->dropped;
	char density[40] = "";
	if (summary->dropped)
		cli_say("the trace has the newest %s events", text_count(kept).data);
	/* The size of a file that was appended to is not that of this recording. */
	if (kept && record->session.file_mode != SESSION_FILE_APPEND)
		snprintf(density, sizeof(density), ", %.2f bytes an event", (double)summary->size_bytes / (double)kept);
	cli_say("%s: %s%s; tracing cost: logger %.3f s of CPU, %s of buffers, %s wait%s (%.3f s)", shown,
		text_bytes(summary->size_bytes).data, density, (double)summary->logger_cpu_ns / 1e9,
		text_bytes(summary->peak_buffer_bytes).data, text_count(summary->waits).data,
		summary->waits == 1 ? "" : "s", (double)summary->wait_ns / 1e9);
	print_index(summary);
}

void record_print_summary(const struct record *record, int logger_status)
{
	const struct control_summary *summary = &record->summary;
	const char *shown = record->output && !session_path_is_numbered(record->output)
				    ? record->output
				    : strrchr(record->trace_path, '/') + 1;
	if (!record->has_summary) {
		print_logger_end(shown, logger_status);
		return;
	}
	if (record->is_quiet) {
		if (!record->is_silent)
			print_missing(record);
		record_keep_survey(record);
		return;
	}
	print_counts(record);
	if (record->session.file_mode == SESSION_FILE_NONE)
		return;
	bool is_gone = access(record->trace_path, F_OK) != 0;
	/* After an error there may be no file. */
	if (is_gone && !summary->error)
		cli_say("%s is gone: it, or its directory, was removed during the recording", shown);
	else
		print_trace(record, shown);
	if (is_gone || record_print_answer(record, shown, record_keep_survey(record)))
		return;
	print_kinds(summary);
	cli_say_next(record->has_crashed ? "explain" : "report", shown);
}
