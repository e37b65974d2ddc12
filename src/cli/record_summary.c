/* SPDX-License-Identifier: MIT */
/* The summary of a recording: the last lines on standard error. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/record.h"
#include "session/logger.h"
#include "table/index_cache.h"

static void print_untraced(const struct control_summary *summary)
{
	if (summary->untraced_processes || summary->untraced_calls)
		fprintf(stderr, "xheap: %u process%s ran untraced, %" PRIu64 " calls found no room\n",
			summary->untraced_processes, summary->untraced_processes == 1 ? "" : "es",
			summary->untraced_calls);
}

/* With --quiet: what the trace lacks, if anything. */
static void print_missing(const struct record *record)
{
	const struct control_summary *summary = &record->summary;
	if (summary->after)
		cli_say("%s later calls were not recorded", text_count(summary->after).data);
	if (summary->lost)
		fprintf(stderr, "xheap: %" PRIu64 " of %" PRIu64 " events are lost\n", summary->lost,
			summary->events + summary->lost);
	print_untraced(summary);
	if (summary->check_failures)
		fprintf(stderr, "xheap: %" PRIu64 " remembered stacks differed from a full walk\n",
			summary->check_failures);
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

void record_print_summary(const struct record *record, int logger_status)
{
	const struct control_summary *summary = &record->summary;
	const char *shown = record->output && !session_path_is_numbered(record->output)
				    ? record->output
				    : strrchr(record->trace_path, '/') + 1;
	uint64_t kept = summary->events - summary->dropped;
	if (!record->has_summary) {
		if (WIFSIGNALED(logger_status))
			fprintf(stderr, "xheap: the logger was killed by signal %d (%s)", WTERMSIG(logger_status),
				strsignal(WTERMSIG(logger_status)));
		else if (WEXITSTATUS(logger_status) == LOGGER_NO_MEMORY)
			fputs("xheap: the logger ended for want of memory", stderr);
		else
			fprintf(stderr, "xheap: the logger ended with status %d", WEXITSTATUS(logger_status));
		fprintf(stderr, "; what it recorded is safe: xheap recover %s\n", text_shown(shown));
		return;
	}
	if (record->is_quiet) {
		if (!record->is_silent)
			print_missing(record);
		return;
	}
	fprintf(stderr, "xheap: %" PRIu64 " events of %u process%s, %" PRIu64 " lost, %" PRIu64 " stacks truncated",
		summary->events, summary->processes, summary->processes == 1 ? "" : "es", summary->lost,
		summary->ends.truncated);
	if (summary->ends.unwindless)
		fprintf(stderr, ", %" PRIu64 " end at code without unwind data", summary->ends.unwindless);
	putc('\n', stderr);
	if (summary->after)
		cli_say("%s later calls were not recorded", text_count(summary->after).data);
	if (record->session.sample_bytes)
		cli_say("a sample: one byte in %s allocated bytes was chosen; reports estimate the rest",
			text_bytes(record->session.sample_bytes).data);
	print_untraced(summary);
	if (record->session.check_stacks)
		fprintf(stderr, "xheap: %" PRIu64 " remembered stacks differed from a full walk\n",
			summary->check_failures);
	if (record->session.file_mode == SESSION_FILE_NONE)
		return;
	if (summary->dropped)
		cli_say("the trace has the newest %s events", text_count(kept).data);
	char density[40] = "";
	/* The size of a file that was appended to is not that of this recording. */
	if (kept && record->session.file_mode != SESSION_FILE_APPEND)
		snprintf(density, sizeof(density), ", %.2f bytes an event", (double)summary->size_bytes / (double)kept);
	fprintf(stderr,
		"xheap: %s: %s%s; tracing cost: logger %.3f s of CPU, %s of buffers, %" PRIu64 " waits (%.3f s)\n",
		text_shown(shown), text_bytes(summary->size_bytes).data, density, (double)summary->logger_cpu_ns / 1e9,
		text_bytes(summary->peak_buffer_bytes).data, summary->waits, (double)summary->wait_ns / 1e9);
	print_index(summary);
	/* After an error there may be no file. */
	if ((!summary->error || access(record->trace_path, F_OK) == 0) && !record_print_answer(record, shown))
		cli_say("next: xheap report %s", shown);
}
