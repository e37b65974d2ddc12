/* SPDX-License-Identifier: MIT */
/*
 * What is folded was written by a logger, but lies where others may write. The input is a piece of a long run, folded
 * up to a time, and once more, as a logger's process does it. Bit 1 of the header's first reserved byte says that there
 * are two such pieces; the other bytes, up to when each time. Checksums are mended first (mend.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "match/fold.h"
#include "match/match.h"
#include "mend.h"
#include "query/window.h"
#include "replay.h"
#include "table/table.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { INPUT_MAX = 1 << 20, TWICE = 2, PARTS = 128 };

#define expect(is_so) ((is_so) ? (void)0 : (fprintf(stderr, "fold_fuzz:%d: %s\n", __LINE__, #is_so), abort()))

static char given_path[64], joined_path[80], folded_path[80];

/* What the two times are: parts of the trace's, and behind its end. */
static int64_t until(const struct trace *trace, uint8_t part)
{
	return (int64_t)((unsigned __int128)(uint64_t)trace_dictionary(trace)->duration_ns * part / PARTS);
}

/* What has become sums is as much as was there. */
static void check_folded(const char *path, uint64_t event_count)
{
	struct trace *trace;
	struct heap_table *table;
	struct heap_filter filter;
	struct heap_window window;
	struct diag diag = {""};
	expect(trace_open(&trace, path, &diag) == 0);
	expect(trace_dictionary(trace)->is_complete && trace_dictionary(trace)->fold_count == 1);
	expect(trace_dictionary(trace)->event_count == event_count);
	if (heap_table_build(&table, trace, NULL, &diag) == 0) {
		heap_filter_init(&filter);
		heap_window_make(&window, table, &filter, (struct heap_range){0, table->duration_ns}, HEAP_BY_NONE);
		heap_window_fini(&window);
		heap_filter_fini(&filter);
		heap_table_free(table);
	}
	trace_close(trace);
}

/* Whether what is at `from` could be folded to `to`; if not, there is no such file and a reason. */
static bool fold(const char *from, const char *to, uint8_t part)
{
	struct trace *trace;
	struct diag diag = {""};
	if (trace_open_as_written(&trace, from, &diag)) {
		expect(diag.text[0]);
		return false;
	}
	int64_t until_ns = until(trace, part);
	uint64_t event_count = trace_dictionary(trace)->event_count;
	trace_close(trace);
	if (heap_fold(to, from, until_ns, &diag)) {
		expect(diag.text[0] && access(to, F_OK) != 0);
		return false;
	}
	check_folded(to, event_count);
	return true;
}

static void write_input(const uint8_t *data, size_t size)
{
	FILE *file = fopen(given_path, "wb");
	expect(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[INPUT_MAX + 16] __attribute__((aligned(8)));
	struct diag diag = {""};
	if (size > INPUT_MAX || size < sizeof(struct format_header))
		return 0;
	if (!given_path[0]) {
		snprintf(given_path, sizeof(given_path), "/dev/shm/xheap-fuzz-%d.xht", (int)getpid());
		snprintf(joined_path, sizeof(joined_path), "%s.joined", given_path);
		snprintf(folded_path, sizeof(folded_path), "%s.folded", given_path);
	}
	const uint8_t *words = data + offsetof(struct format_header, reserved);
	const char *const pieces[] = {given_path, given_path};
	write_input(out, mend(out, data, size));
	if (trace_join(joined_path, pieces, words[0] & TWICE ? 2 : 1, NULL, &diag) != 0)
		expect(diag.text[0]);
	else if (fold(joined_path, folded_path, words[1]))
		fold(folded_path, joined_path, words[2]);
	unlink(given_path);
	unlink(joined_path);
	unlink(folded_path);
	return 0;
}

const struct replay replay = {.bytes_max = INPUT_MAX, .cuts = 60, .flip_rounds = 300};
